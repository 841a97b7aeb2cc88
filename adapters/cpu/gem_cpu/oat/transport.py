"""Stand-ins for Launchpad and Plasma, which support Python up to 3.10: a rank's learner and actor share a process."""

from __future__ import annotations

import importlib.machinery
import itertools
import sys
import threading
from concurrent.futures import Future
from types import ModuleType, SimpleNamespace
from typing import Any

from gem_cpu.oat import engine


class CourierNode:
    """In Launchpad another process that answers calls; here an object, built on the first call."""

    here = True
    """Whether the node belongs to this rank; calls to other ranks return `None`."""

    def __init__(self, kind: Any, *args: Any, **kwargs: Any) -> None:
        self.kind = kind
        self._make = lambda: kind(*args, **kwargs)
        self._made: Any = None

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if not self.here:
            return None
        if self._made is None:
            self._made = self._make()
        return getattr(self._made, name)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: self.call(name, *args, **kwargs)

    @property
    def futures(self) -> Any:
        return _Futures(self)


class _Futures:
    def __init__(self, node: CourierNode) -> None:
        self._node = node

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()

            def answer() -> None:
                try:
                    future.set_result(self._node.call(name, *args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)

            if name == "init":
                answer()  # transformers cannot load two models of a process at a time
            else:
                # As Launchpad's servers answer calls. Python waits for no thread of a run that failed.
                threading.Thread(target=answer, name=f"gem-cpu-{name}", daemon=True).start()
            return future

        return call


class PyClassNode:
    """In Launchpad a process that runs; here the object that `launch` runs."""

    def __init__(self, kind: Any, *args: Any) -> None:
        self.kind, self.args = kind, args


class Program:
    def __init__(self, name: str) -> None:
        self.nodes: list[Any] = []

    def add_node(self, node: Any, label: str = "") -> Any:
        self.nodes.append(node)
        return node


def learner_of(program: Program, rank: int = 0) -> Any:
    """The learner of a rank, not yet running. Its process has only the actor of the same rank."""
    actors = [node for node in program.nodes if isinstance(node, CourierNode) and "Actor" in node.kind.__name__]
    for number, actor in enumerate(actors):
        actor.here = number == rank
    node = [node for node in program.nodes if isinstance(node, PyClassNode)][rank]
    learner = node.kind(*node.args)
    learner.args.learner_gpus_per_group = 1  # each rank has its own actor
    engine.LLM.learner = learner
    return learner


def launch(program: Program, **_: Any) -> None:
    learner_of(program).run()


_STORE: dict[bytes, Any] = {}
_IDS = itertools.count()


class ObjectID(bytes):
    def binary(self) -> bytes:
        return bytes(self)


class _PlasmaClient:
    def put(self, data: Any) -> ObjectID:
        name = ObjectID(str(next(_IDS)).encode())
        _STORE[bytes(name)] = data
        return name

    def get(self, name: ObjectID) -> Any:
        return _STORE[bytes(name)]

    def delete(self, names: tuple[ObjectID, ...]) -> None:
        for name in names:
            del _STORE[bytes(name)]


def install() -> None:
    """Put the stand-ins where Oat imports the real ones."""
    _module("vllm", LLM=engine.LLM, SamplingParams=engine.SamplingParams, __version__="0.8.5")
    _module("vllm.lora")
    _module("vllm.lora.request", LoRARequest=engine.LoRARequest)
    local = _module("launchpad.nodes.python.local_multi_processing", PythonProcess=SimpleNamespace)
    ours = {"Program": Program, "CourierNode": CourierNode, "PyClassNode": PyClassNode, "launch": launch}
    signals = {"stop": _nothing, "register_stop_handler": _nothing, "unregister_stop_handler": _nothing}
    _module("launchpad", **ours, **signals)
    _module("launchpad.nodes")
    _module("launchpad.nodes.python", local_multi_processing=local)
    import pyarrow

    plasma = _module("pyarrow.plasma", ObjectID=ObjectID, connect=lambda path: _PlasmaClient())
    pyarrow.plasma = plasma  # pyright: ignore[reportAttributeAccessIssue]
    import oat.learners.base
    import oat.utils.ipc

    oat.utils.ipc.PlasmaShmServer.get_shm_path = lambda self: "memory"
    oat.learners.base.init_process_group = lambda **_: None  # weights are read, not sent


def _nothing(*_: Any) -> None: ...


def _module(name: str, **content: Any) -> ModuleType:
    module: Any = ModuleType(name)
    module.__spec__, module.__path__ = importlib.machinery.ModuleSpec(name, None), []
    module.__dict__.update(content)
    sys.modules[name] = module
    return module
