"""Server processes.

The SDK's own `stdio_client` buffers without limit while a server sends no line end, takes time quadratic in the length
of a line, and prints a traceback for every line outside the protocol. When the client is killed, a server that does not
end with its input stays behind. This transport for the SDK's client has none of these faults.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from signal import Signals
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from gem_core.errors import ToolError, printable
from gem_mcp import _guard as guard
from gem_mcp._config import StdioServer
from gem_mcp._traffic import MAX_BYTES, Traffic, too_long

_LOGGED_LINES, _LOGGED_CHARACTERS = 1000, 500
"""Lines of one process, and characters of one line, that are logged."""
_GRACE_SECONDS = 2.0
"""Seconds that a server may take to end once its input is closed."""
_GUARD_SECONDS = 30.0
"""Seconds that the guard may take to end. It ends at once, but on a busy machine it may have to wait to run."""
_LAST_WORDS, _LAST_WORDS_SECONDS = 500, 0.5
"""Bytes of the last output to report, and seconds to wait for them."""
_CHUNK = 1 << 16
_NOISE_BYTES, _NOISE_SECONDS = 1 << 18, 0.01
"""Once its last line was logged, a process's noise is read in such pieces and at such intervals."""

_log = logging.getLogger("gem_mcp")


@asynccontextmanager
async def stdio_transport(
    name: str, server: StdioServer, traffic: Traffic, lost: Callable[[str], None]
) -> AsyncGenerator[Any]:
    """Start a server and give the streams of both directions, in the form that the SDK's client takes.

    Args:
        name: of the server, for the log.
        server: how to start it.
        traffic: checks its messages.
        lost: called with the reason when the server ended, closed its streams, or sent too much.

    Raises:
        ToolError: it cannot be started.
    """
    process = _ServerProcess(name, await _started(server), traffic, lost)
    arriving, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, leaving = anyio.create_memory_object_stream[SessionMessage](0)
    patience = 0.0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.listen)
        tasks.start_soon(process.read, arriving)
        tasks.start_soon(process.write, leaving)
        try:
            yield incoming, outgoing
            patience = _GRACE_SECONDS
        finally:
            with anyio.CancelScope(shield=True):
                incoming.close()
                outgoing.close()
                await process.end(patience)
            tasks.cancel_scope.cancel()


async def _started(server: StdioServer) -> asyncio.subprocess.Process:  # pyright: ignore[reportReturnType]  # a shield suppresses nothing
    program = (sys.executable, "-I", "-S", str(Path(guard.__file__)), server.command, *server.args)
    pipe = asyncio.subprocess.PIPE
    environment = {**get_default_environment(), **server.env}
    try:
        # Shielded: on cancellation asyncio would kill the guard, which may already have started the server.
        with anyio.CancelScope(shield=True):
            return await asyncio.create_subprocess_exec(
                *program,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=environment,
                cwd=server.cwd,
                start_new_session=True,
                limit=MAX_BYTES,
            )
    except OSError as error:
        raise ToolError(f"cannot be started: {error}") from error


class _ServerProcess:
    """A server under its guard."""

    def __init__(
        self, name: str, process: asyncio.subprocess.Process, traffic: Traffic, lost: Callable[[str], None]
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._process = process
        self._name = name
        self._traffic = traffic
        self._lost = lost
        self._ending = False
        self._lines_left = _LOGGED_LINES
        self._last_words = b""
        self._silent = asyncio.Event()

    async def read(self, arriving: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass on its messages. The session is over when the last one has come."""
        async with arriving:
            try:
                while line := await self._stdout.readline():
                    await self._arrive(line, arriving)
                self._give_up(await self._cause_of_death())
            except ToolError as error:
                self._give_up(str(error))
            except ValueError:  # a line over the limit
                self._give_up(str(too_long()))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):  # the session is closed
                while await self._stdout.read(_CHUNK):  # otherwise it would block on a write and never end
                    pass

    async def write(self, leaving: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send it the messages for it."""
        async with leaving:
            try:
                async for message in leaving:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self._traffic.leaves(text.encode())
                    self._stdin.write(text.encode() + b"\n")
                    await self._stdin.drain()
            except OSError:
                await asyncio.sleep(_GRACE_SECONDS)  # if it died, the reader reports how
                self._give_up("closed its input")

    async def listen(self) -> None:
        """Read everything that it writes to stderr, so that it never blocks."""
        rest = b""
        while chunk := await self._stderr.read(_CHUNK if self._lines_left else _NOISE_BYTES):
            self._hear(chunk)
            if not self._lines_left:
                await asyncio.sleep(_NOISE_SECONDS)
            else:
                *lines, rest = (rest[-_CHUNK:] + chunk).split(b"\n")
                for line in lines:
                    self._note(line)
        self._note(rest)
        self._silent.set()

    async def end(self, patience: float) -> None:
        """Close its input, which ends a well-behaved server; kill any other with its whole group."""
        self._ending = True
        self._stdin.close()
        if not await self._gone(patience):
            with suppress(ProcessLookupError):
                self._process.terminate()
        if not await self._gone(_GUARD_SECONDS):  # killed, it would leave the server behind
            self._process.kill()
            await self._gone(_GRACE_SECONDS)
        # Pipes stay open while another process holds the other ends, and asyncio has no public way to close them.
        self._process._transport.close()  # pyright: ignore

    async def _arrive(self, line: bytes, arriving: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        self._traffic.arrives(line)
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._hear(line)
            self._note(b"on stdout, which is for the protocol alone: " + line)
            return
        await arriving.send(SessionMessage(message))

    def _give_up(self, cause: str) -> None:
        if not self._ending:  # otherwise it ends in order
            self._lost(cause)

    def _hear(self, words: bytes) -> None:
        self._last_words = (self._last_words + words)[-_LAST_WORDS:]

    def _note(self, line: bytes) -> None:
        text = line[:_LOGGED_CHARACTERS].decode(errors="replace").rstrip()
        if text and self._lines_left:
            self._lines_left -= 1
            _log.info("%s: %s%s", self._name, printable(text), "" if self._lines_left else " [the rest is not logged]")

    async def _cause_of_death(self) -> str:
        if not await self._gone(_GRACE_SECONDS):
            return "closed its output"
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await self._silent.wait()
        code = self._process.returncode or 0
        known = {guard.SIGNALLED + signal: signal.name for signal in Signals}
        how = f"was killed by {known[code]}" if code in known else f"ended with code {code}"
        said = self._last_words.decode(errors="replace").strip()
        return f"{how}; its last words: {said}" if said else how

    async def _gone(self, seconds: float) -> bool:
        """Whether it ended in time. `wait()` would also wait for other processes that hold its pipes."""
        deadline = anyio.current_time() + seconds
        while self._process.returncode is None and anyio.current_time() < deadline:
            await asyncio.sleep(0.01)
        return self._process.returncode is not None
