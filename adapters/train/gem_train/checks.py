"""Checks of a framework's own settings; each adapter applies them to its framework."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gem_core.errors import SettingsError
from gem_train.settings import RunSettings

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
"""The settings that truncate or distort a sampler's distribution, each with the values that switch it off."""


def check_sampling(given: Mapping[str, Any], spelled: Spell, *, scaled: bool) -> None:
    """Refuse to sample from another distribution than the trained one. One rule for every framework.

    A trainer computes log-probabilities over the whole vocabulary. Its ratios and gradients are those of the sampled
    policy only if responses are sampled from the whole vocabulary as well. `top_k`, `top_p`, `min_p` and penalties
    truncate or distort the sampled distribution; the trainer does not. A temperature divides all logits, and is correct
    if the trainer divides its logits by the same number.

    Args:
        given: the settings of the training sampler, by the names above and `temperature`. `None` is not set.
        spelled: see `Spell`.
        scaled: whether the trainer divides its logits by the temperature.

    Raises:
        SettingsError: a setting changes the distribution.
    """
    for name, value in given.items():
        if value is None:
            continue
        if name == "temperature" and not scaled and value != 1:
            raise SettingsError(
                f"{spelled(name, value)} samples from another policy than the trained one, because the trainer does "
                f"not divide its logits by the temperature. {SILENT} Use 1."
            )
        if name == "temperature" and not value > 0:
            raise SettingsError(f"{spelled(name, value)}: training samples, so the temperature has to be above 0")
        if value not in UNTRUNCATED.get(name, (value,)):
            raise SettingsError(
                f"{spelled(name, value)} samples from another policy than the trained one, whose log-probabilities "
                f"cover the whole vocabulary. {SILENT} Use {UNTRUNCATED[name][0]}."
            )


def check_fixed(fixed: Mapping[str, tuple[Any, str]], read: Read, spelled: Spell) -> None:
    """Refuse other values than the required ones.

    Args:
        fixed: for each setting the value that it must have, and the reason.
        read, spelled: see `Read` and `Spell`.

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
    """Refuse a number that is not a multiple of another one.

    Args:
        whole, part: the two numbers.
        written, part_written: how users set them, with their values.
        reason: what their quotient is.

    Raises:
        SettingsError: the second does not divide the first.
    """
    if whole % part:
        raise SettingsError(f"{written} is not a multiple of {part_written}; {reason}")


def check_aggregation(written: str, chosen: str, allowed: Iterable[str]) -> None:
    """Refuse a loss that weights tokens by the length of their row.

    Args:
        written: how users set the aggregation, with its value.
        chosen: the value.
        allowed: the values that weight all tokens of a batch equally, whatever the length of their rows.

    Raises:
        SettingsError: the aggregation is not allowed.
    """
    if chosen not in (options := [*allowed]):
        raise SettingsError(
            f"{written} averages each row by its own length: tokens of long answers would count less. {SILENT} "
            f"Use one of {', '.join(options)}."
        )


def check_rows(settings: RunSettings, across: Mapping[str, bool]) -> None:
    """Refuse settings that treat all tokens of a row as one response where a row holds several turns.

    Args:
        settings: the settings of the run.
        across: settings of the framework as users write them, with their values, and whether they treat a row as one
            response.

    Raises:
        SettingsError: such a setting is on, and a row is an episode.
    """
    for written, wrong in across.items():
        if wrong and settings.row == "episode":
            raise SettingsError(
                f"{written} treats all turns of a row as one response. {SILENT} Use {settings.spelled('row', 'turn')}, "
                "or leave it out."
            )
