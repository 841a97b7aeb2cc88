"""`gem-core search-server`: its options and its start."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from collections.abc import Callable, Generator
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gem_core.cli import say
from gem_core.errors import MissingExtraError, ToolError
from gem_core.installation import install_line
from gem_remote import bound_socket, end_on_sigterm
from gem_search._encoder import ENCODER

if TYPE_CHECKING:
    from gem_search._retriever import Retriever


class Method(str, Enum):
    """The kinds of retrieval."""

    bm25 = "bm25"
    dense = "dense"


def search_server(
    corpus: Annotated[
        Path | None,
        typer.Option(help='A jsonl file of {"contents"} or {"title", "text"}; otherwise the small bundled one.'),
    ] = None,
    retriever: Annotated[Method, typer.Option(help="By words, or by meaning with a model.")] = Method.bm25,
    model: Annotated[
        str | None, typer.Option(help=f"Name or folder of a sentence-transformers model; by default {ENCODER}.")
    ] = None,
    query_prompt: Annotated[str | None, typer.Option(help="What the model wants before a query: 'query: '.")] = None,
    passage_prompt: Annotated[str | None, typer.Option(help="... and before a passage: 'passage: '.")] = None,
    index: Annotated[
        Path | None, typer.Option(help="Folder in which the index is kept; built on first use, then loaded.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name of this server beside that of the machine. Repeat for several."),
    ] = None,
    topk: Annotated[int, typer.Option(min=1, max=100, help="Passages for requests that do not say.")] = 3,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts that are searched or encoded together.")] = 64,
) -> None:
    """Serve passages to the search tool."""
    end_on_sigterm()  # an interrupted build cleans up too
    # First, so that a used port is reported before the index is built.
    with bound_socket(host, port, ToolError) as address:
        try:
            finder = _retriever(retriever, model, query_prompt, passage_prompt, batch_size)
            serve = _server(corpus, finder, index, topk, batch_size, [host, *(allow_host or ())])
            serve(address, lambda: _announce(address))
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def _server(
    corpus: Path | None, retriever: Retriever, folder: Path | None, topk: int, batch_size: int, hosts: list[str]
) -> Callable[[socket.socket, Callable[[], None]], None]:
    with extra("search-server"):
        from gem_search._corpus import BUNDLED
        from gem_search._index import open_index
        from gem_search._server import SearchServer
    begin, path = time.monotonic(), corpus or BUNDLED
    _tell(f"Reading {path}")
    opened = open_index(path, retriever, folder)
    _tell(f"{len(opened.corpus):,} passages, {retriever.settings['retriever']}, {time.monotonic() - begin:.1f} s.")
    return SearchServer(opened, topk=topk, batch_size=batch_size, hosts=hosts).run


def _retriever(
    method: Method, model: str | None, query_prompt: str | None, passage_prompt: str | None, batch_size: int
) -> Retriever:
    if method is Method.bm25:
        if model or query_prompt or passage_prompt:
            raise ToolError("--model and the prompts are for --retriever dense")
        with extra("search-server"):
            from gem_search._bm25 import Bm25
        return Bm25()
    with extra("search-dense"):
        from gem_search._dense import Dense
    return Dense(model or ENCODER, query_prompt=query_prompt, passage_prompt=passage_prompt, batch_size=batch_size)


@contextlib.contextmanager
def extra(name: str) -> Generator[None]:
    """Turn a missing module within the block into an error that says what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = f"this needs the module {error.name!r}, which is not installed"
        raise MissingExtraError(f"{missing}. Next: {install_line(name)}") from error


def _announce(address: socket.socket) -> None:
    host, port = address.getsockname()[:2]
    host = f"[{host}]" if ":" in host else {"0.0.0.0": "127.0.0.1"}.get(host, host)
    url = f"http://{host}:{port}/retrieve"
    _tell(f"Listening at {url}\nexport SEARCH_URL={url}")


def _tell(text: str) -> None:
    say(text)
    sys.stdout.flush()  # the parent process may read it from a pipe
