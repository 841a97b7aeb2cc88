"""Errors of environments that a server plays."""

from __future__ import annotations

from gem_core.errors import EnvError, EnvKwargsError, MissingExtraError, NotFoundError, ResetNeededError
from gem_remote._messages import Failed

_SAME: dict[str, type[Exception]] = {
    one.__name__: one
    for one in (EnvError, EnvKwargsError, MissingExtraError, NotFoundError, NotImplementedError, ResetNeededError)
}
"""Errors of the contract, which callers handle by their type."""


class RemoteError(EnvError):
    """A server's environment raised an exception.

    Args:
        error: the name of its type.
        text: its text.
        where: the id and the server.
    """

    def __init__(self, error: str, text: str, where: str) -> None:
        super().__init__(error, text, where)  # all arguments, or the error could not be pickled
        self.error = error
        self.text = text
        self.where = where

    def __str__(self) -> str:
        return f"{self.error}: {self.text} (raised by {self.where})"


def error_of(failed: Failed, where: str) -> Exception:
    """The exception that a server's reply is about: of the same type where it is one of the contract."""
    kind = _SAME.get(failed.error)
    return RemoteError(failed.error, failed.text, where) if kind is None else kind(f"{failed.text} (said by {where})")
