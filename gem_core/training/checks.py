"""Checks of a framework's own settings, which each adapter lists for its framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gem_core.errors import SettingsError

Read = Callable[[str], Any]
"""A setting's value, by its name."""
Spell = Callable[[str, Any], str]
"""A setting and its value, as users of the framework write them."""


def check_fixed(fixed: Mapping[str, tuple[Any, str]], read: Read, spelled: Spell) -> None:
    """Refuse other values than those that are needed.

    Args:
        fixed: of each setting the value that it has to have, and why.
        read, spelled: see there.

    Raises:
        SettingsError: a setting has another value.
    """
    for name, (needed, reason) in fixed.items():
        if (found := read(name)) != needed:
            raise SettingsError(f"{spelled(name, found)} cannot be used: {reason}. Leave it out.")


def check_counts(names: Iterable[str], read: Read, spelled: Spell) -> None:
    """Refuse what is no whole number of at least 1. Raises `SettingsError`."""
    for name in names:
        if type(found := read(name)) is not int or found < 1:
            raise SettingsError(f"{spelled(name, found)}: a whole number of at least 1 is needed")


def check_fractions(names: Iterable[str], read: Read, spelled: Spell) -> None:
    """Refuse what is no number from 0 to 1. Raises `SettingsError`."""
    for name in names:
        if not isinstance(found := read(name), int | float) or not 0 <= found <= 1:
            raise SettingsError(f"{spelled(name, found)} is not between 0 and 1")
