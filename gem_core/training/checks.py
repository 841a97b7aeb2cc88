"""Checks of a framework's own settings, which each adapter lists for its framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gem_core.errors import SettingsError
from gem_core.training.settings import RunSettings

Read = Callable[[str], Any]
"""A setting's value, by its name."""
Spell = Callable[[str, Any], str]
"""A setting and its value, as users of the framework write them."""

SILENT = "This would silently change the algorithm."

UNTRUNCATED: dict[str, tuple[Any, ...]] = {
    "top_p": (1,),
    "top_k": (-1, 0),
    "min_p": (0,),
    "repetition_penalty": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
}
"""Of each setting that cuts or bends the distribution of a sampler, the values with which it does nothing."""


def check_sampling(given: Mapping[str, Any], spelled: Spell, *, scaled: bool) -> None:
    """Refuse sampling from another distribution than the one that is trained. One rule for every framework.

    A trainer computes log-probabilities over the whole vocabulary. Its ratios and gradients are those of the sampled
    policy only if responses are sampled from the whole vocabulary as well. `top_k`, `top_p`, `min_p` and penalties cut
    or bend the sampled distribution, which the trainer does not follow. A temperature divides all logits, and is right
    where the trainer divides its logits by the same number.

    Args:
        given: the settings of training's sampler by the names above, and `temperature`. `None` is not set.
        spelled: see there.
        scaled: whether the trainer divides its logits by the temperature.

    Raises:
        SettingsError: one of them changes the distribution.
    """
    for name, value in given.items():
        if value is None:
            continue
        if name == "temperature" and not scaled and value != 1:
            raise SettingsError(
                f"{spelled(name, value)} samples from another policy than the one that is trained, as the trainer "
                f"does not divide its logits by the temperature. {SILENT} Use 1."
            )
        if name == "temperature" and not value > 0:
            raise SettingsError(f"{spelled(name, value)}: training samples, so the temperature has to be above 0")
        if value not in UNTRUNCATED.get(name, (value,)):
            raise SettingsError(
                f"{spelled(name, value)} samples from another policy than the one that is trained, whose "
                f"log-probabilities are those of the whole vocabulary. {SILENT} Use {UNTRUNCATED[name][0]}."
            )


def check_fixed(fixed: Mapping[str, tuple[Any, str]], read: Read, spelled: Spell) -> None:
    """Refuse other values than the needed ones.

    Args:
        fixed: of each setting the value that it must have, and why.
        read, spelled: see there.

    Raises:
        SettingsError: a setting has another value.
    """
    for name, (needed, reason) in fixed.items():
        if (found := read(name)) != needed:
            raise SettingsError(f"{spelled(name, found)} cannot be used: {reason}. Leave it out.")


def check_counts(names: Iterable[str], read: Read, spelled: Spell) -> None:
    """Refuse anything but a whole number of at least 1. Raises `SettingsError`."""
    for name in names:
        if type(found := read(name)) is not int or found < 1:
            raise SettingsError(f"{spelled(name, found)}: a whole number of at least 1 is needed")


def check_multiple(whole: int, written: str, part: int, part_written: str, reason: str) -> None:
    """Refuse a number that another one does not divide.

    Args:
        whole, part: the two numbers.
        written, part_written: how users set them, with their values.
        reason: what their quotient is.

    Raises:
        SettingsError: the second does not divide the first.
    """
    if whole % part:
        raise SettingsError(f"{written} is no multiple of {part_written}; {reason}")


def check_aggregation(written: str, chosen: str, allowed: Iterable[str]) -> None:
    """Refuse a loss that weighs rows by their length.

    Args:
        written: how users set the aggregation, with its value.
        chosen: the value.
        allowed: the values with which each token of a batch counts the same, whatever the length of its row.

    Raises:
        SettingsError: the aggregation is not allowed.
    """
    if chosen not in (options := [*allowed]):
        raise SettingsError(
            f"{written} averages each row by its own length: long answers would count less than short ones. {SILENT} "
            f"Use one of {', '.join(options)}."
        )


def check_rows(settings: RunSettings, across: Mapping[str, bool]) -> None:
    """Refuse what takes all tokens of a row together where a row holds several turns.

    Args:
        settings: the run's.
        across: settings of the framework as users write them, with their values, and whether they do so.

    Raises:
        SettingsError: one of them does, and a row is an episode.
    """
    for written, wrong in across.items():
        if wrong and settings.row == "episode":
            raise SettingsError(
                f"{written} takes all turns of a row together. {SILENT} Use {settings.spelled('row', 'turn')}, or "
                "leave it out."
            )
