"""One server of programs for all tests of a file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gem_sandbox import LocalSandbox, SandboxError


@contextlib.contextmanager
def one_server(*preload: str, concurrency: int | None = None) -> Iterator[None]:
    """Keep the server of sandboxes with these settings.

    It ends with the last of them. Without this, it starts anew with each environment of each test, and a start takes a
    third of a second, mostly imports.
    """
    with LocalSandbox(preload=preload, concurrency=concurrency) as sandbox:
        with contextlib.suppress(SandboxError):  # those who need one say so
            sandbox.run("")
        yield
