"""Servers that the SDK would not write, in the protocol of 2025: `raw_server.py KIND [MARKER]`."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ONE = [{"name": "ping", "description": "Says pong.", "inputSchema": {"type": "object"}}]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}, "sampling": {}},
    "serverInfo": {"name": "raw", "version": "0"},
}


def send(message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def requests() -> Iterator[Any]:
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "server/discover":
            send({"id": message["id"], "error": {"code": -32601, "message": "what?"}})
        elif message.get("method") == "initialize":
            send({"id": message["id"], "result": HELLO})
        elif "id" in message:
            yield message


def serve(tools: Any = ONE, answer: Any = "pong") -> None:
    """A well-behaved one: `tools` may be pages by cursor, `answer` a function of the arguments."""
    for message in requests():
        if message["method"] == "tools/list":
            cursor = (message.get("params") or {}).get("cursor")
            listed = tools(cursor) if callable(tools) else {"tools": tools}
            send({"id": message["id"], "result": listed})
        elif message["method"] == "tools/call":
            text = answer(message["params"]["arguments"]) if callable(answer) else answer
            send({"id": message["id"], "result": {"content": [{"type": "text", "text": text}]}})


def garbage() -> None:
    """Prints what is no message, before and in between."""
    print("Welcome to the raw server!\n{]\n\udcff" + "z" * 100_000, flush=True)
    serve(answer=lambda arguments: print("working ...", flush=True) or "pong")


def flood() -> None:
    """Writes 20 MB on stderr per call."""
    serve(answer=lambda arguments: sys.stderr.write("noise\n" * 3_500_000) and "pong")


def mute() -> None:
    """Never answers, and stays when its input ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def stays() -> None:
    """Works, and stays when its input ends."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve()
    time.sleep(600)


def hangs() -> None:
    """Answers nothing any more after a call, unless it is asked to be awake."""
    serve(answer=lambda arguments: "pong" if arguments else str(time.sleep(600)))


def fragile() -> None:
    """Counts calls, and ends, waits or starts a process where it is told to."""
    calls = 0
    for message in requests():
        arguments = message["params"].get("arguments") or {} if message["method"] == "tools/call" else {}
        if message["method"] == "tools/list":
            send({"id": message["id"], "result": {"tools": ONE}})
        elif "leave" in arguments:
            print("these are my last words", file=sys.stderr, flush=True)
            os._exit(arguments["leave"])
        elif "never" not in arguments:
            calls += 1
            if "child" in arguments:
                subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", arguments["child"]])
            send({"id": message["id"], "result": {"content": [{"type": "text", "text": f"{calls} {os.getpid()}"}]}})


def leaves() -> None:
    """Ends at each call."""
    serve(answer=lambda arguments: sys.exit(5))


def crash() -> None:
    """Ends at once."""
    print("no database", file=sys.stderr)
    sys.exit(3)


def pages() -> None:
    """3,000 tools, 100 at a time."""

    def page(cursor: str | None) -> Any:
        first = int(cursor or 0)
        named = [{**ONE[0], "name": f"ping{number}"} for number in range(first, first + 100)]
        return {"tools": named, **({"nextCursor": str(first + 100)} if first < 2900 else {})}

    serve(page)


def endless() -> None:
    """The list of tools goes on and on."""
    numbers = iter(range(1 << 60))

    def page(cursor: str | None) -> Any:
        return {
            "tools": [{**ONE[0], "name": f"ping{next(numbers)}"} for _ in range(100)],
            "nextCursor": str(next(numbers)),
        }

    serve(page)


def changing() -> None:
    """Has another tool each time it is asked, and says that the list changed."""
    memory = Path(sys.argv[2])

    def listed(cursor: str | None) -> Any:
        number = int(memory.read_text()) if memory.exists() else 0
        memory.write_text(str(number + 1))
        send({"method": "notifications/tools/list_changed"})
        return {"tools": [{**ONE[0], "name": f"ping{number}"}]}

    serve(listed)


def odd() -> None:
    """Names that no function may have, and schemas that say little."""
    schema = {"type": "object", "properties": {"a": True, "b": {"type": "string"}}, "required": ["b"]}
    serve([{"name": "files/list all", "inputSchema": schema}, {"name": "none", "inputSchema": {"type": "object"}}])


def endless_line() -> None:
    """Answers a call with a line that has no end."""

    def answer(arguments: Any) -> str:
        try:
            while True:
                os.write(1, b"x" * 65536)
        except OSError:
            os._exit(0)

    serve(answer=answer)


def asks() -> None:
    """Asks for sampling, roots and an answer of the user within a call."""
    for message in requests():
        if message["method"] == "tools/list":
            send({"id": message["id"], "result": {"tools": ONE}})
            continue
        said = []
        for number, method in enumerate(("sampling/createMessage", "roots/list", "elicitation/create")):
            params = {
                "messages": [],
                "maxTokens": 1,
                "message": "?",
                "requestedSchema": {"type": "object", "properties": {}},
            }
            send({"id": 1000 + number, "method": method, "params": params})
            said.append(json.loads(sys.stdin.readline()).get("error", {}).get("message", "agreed"))
        send({"id": message["id"], "result": {"content": [{"type": "text", "text": "; ".join(said)}]}})


def pattern() -> None:
    """Announces answers that its own pattern takes for ever to check."""
    schema = {"type": "object", "properties": {"said": {"type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$"}}}
    for message in requests():
        answer = {"content": [{"type": "text", "text": "pong"}], "structuredContent": {"said": "a" * 5000}}
        tools = {"tools": [{**ONE[0], "outputSchema": schema}]}
        send({"id": message["id"], "result": tools if message["method"] == "tools/list" else answer})


NOISE: dict[str, Any] = {
    "requests": {"id": 7, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
    "notifications": {"method": "notifications/message", "params": {"level": "info", "data": "x" * 100}},
    "progress": {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
    "answers": {"id": 12345, "result": {}},
}


def noisy() -> None:
    """Sends the same without an end while it should answer a call."""
    line = "{}\n" if sys.argv[2] == "nothing" else json.dumps({"jsonrpc": "2.0", **NOISE[sys.argv[2]]}) + "\n"

    def answer(arguments: Any) -> str:
        try:
            while True:
                os.write(1, line.encode() * 100)
        except OSError:
            os._exit(0)

    serve(answer=answer)


def many_values() -> None:
    """Answers with more values than anybody reads."""
    for message in requests():
        values: Any = {"values": [[]] * 1_000_000}
        answer = {"content": [], "structuredContent": values}
        send({"id": message["id"], "result": {"tools": ONE} if message["method"] == "tools/list" else answer})


def long_text() -> None:
    """Answers with a text of a megabyte, in which there are many commas."""
    serve(answer=lambda arguments: '1,"2",[\\' * 120_000)


def chatty() -> None:
    """Reports its progress a thousand times in each call."""

    def answer(arguments: Any) -> str:
        for _ in range(1000):
            send(NOISE["progress"])
        return "pong"

    serve(answer=answer)


def lies() -> None:
    """Answers calls with what is no result."""
    for message in requests():
        result = {"tools": ONE} if message["method"] == "tools/list" else {"content": "not a list"}
        send({"id": message["id"], "result": result})


def blocks() -> None:
    """Answers a call with contents of every kind."""
    for message in requests():
        content = [
            {"type": "text", "text": "first"},
            {"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "file:///a.txt", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "inside b"}},
            {"type": "resource", "resource": {"uri": "file:///c.bin", "blob": "AAAA", "mimeType": "x/y"}},
        ]
        send(
            {
                "id": message["id"],
                "result": {"tools": ONE} if message["method"] == "tools/list" else {"content": content},
            }
        )


class Sessions(BaseHTTPRequestHandler):
    """HTTP with sessions that a restart forgets, for those who have the password."""

    protocol_version = "HTTP/1.1"
    known: frozenset[str] = frozenset()

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message["method"]
        if self.headers.get("Authorization") != "Bearer sesame":
            self.reply(401, b"")
        elif method == "server/discover":
            self.result(message, 400, {"error": {"code": -32601, "message": "what?"}})
        elif method == "initialize":
            Sessions.known |= {f"{os.getpid()}-{len(self.known)}"}
            self.result(message, 200, {"result": HELLO}, {"Mcp-Session-Id": max(self.known)})
        elif self.headers.get("Mcp-Session-Id") not in self.known:
            self.reply(404, b"")
        elif "id" not in message:
            self.reply(202, b"")
        elif method == "tools/call" and KIND in ("events", "comments"):
            self.burst()
        elif method == "tools/call" and KIND == "large":
            self.result(message, 200, {"result": {"content": [{"type": "text", "text": "x" * (9 << 20)}]}})
        elif method == "tools/call" and KIND == "compressed":
            self.reply(
                200, gzip.compress(b"x" * (50 << 20)), {"Content-Encoding": "gzip", "Content-Type": "application/json"}
            )
        else:
            text = {"content": [{"type": "text", "text": str(os.getpid())}]}
            self.result(message, 200, {"result": {"tools": ONE} if method == "tools/list" else text})

    def do_GET(self) -> None:
        self.reply(405, b"")

    def do_DELETE(self) -> None:
        Sessions.known -= {self.headers.get("Mcp-Session-Id", "")}
        self.reply(204, b"")

    def result(self, message: Any, status: int, body: Any, headers: Any = None) -> None:
        text = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **body}).encode()
        self.reply(status, text, {"Content-Type": "application/json", **(headers or {})})

    def burst(self) -> None:
        """Events without an end."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        event = f"data: {json.dumps({'jsonrpc': '2.0', **NOISE['notifications']})}\n\n" if KIND == "events" else ":\n\n"
        try:
            while True:
                self.wfile.write(event.encode() * 100)
        except OSError:
            self.close_connection = True

    def reply(self, status: int, body: bytes, headers: Any = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


KIND = sys.argv[3] if len(sys.argv) > 3 else ""
"""What a server over HTTP answers calls with."""


def sessions() -> None:
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Sessions).serve_forever()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
