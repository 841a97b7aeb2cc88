"""A responder (an opponent, a user simulator) that an environment queries while an episode is played.

A partner's answers follow from no seed. So an environment puts them into `info["partner_replies"]`, and a replay of the
episode gives them back to `reset(partner_replies=...)`: the partner is not asked a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from gem_core.errors import EnvKwargsError
from gem_core.responses import speech_of

PARTNER_REPLIES = "partner_replies"
"""Key of `info`, and the option of `reset`: a list of a partner's answers, in the order in which they came."""

PartnerSetting: TypeAlias = str | Mapping[str, Any]
"""The name of a partner, such as `model:qwen`, or a dict of the name as `model` and further options."""


class Partner(Protocol):
    """Answers conversations. Several environments of a process may ask at the same time."""

    def answer(self, messages: Sequence[Mapping[str, str]], episode: str) -> str:
        """The answer to a conversation.

        Args:
            messages: each has `role` (`system`, `user` or `assistant`) and `content`; the last one is of the user.
            episode: the same text for each message of an episode, and another for each other episode.

        Raises:
            EnvError: there is no answer. The episode has failed.
        """
        ...

    def close(self) -> None:
        """Release what this object holds. Safe to call twice."""
        ...


class PartnerConversation:
    """What one partner is told and answers in an episode.

    Args:
        partner: who answers.
        episode: as for `Partner.answer`.
        log: shared with the other conversations of the environment.
        system: the first message, if there is one.
    """

    def __init__(self, partner: Partner, episode: str, log: PartnerLog, system: str = "") -> None:
        self._partner = partner
        self._episode = episode
        self._log = log
        self._messages: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []

    def ask(self, text: str) -> str:
        """Tell the partner something, and return what it says, without its thoughts. Raises as `Partner.answer`."""
        self._messages.append({"role": "user", "content": text})
        answer = self._log.recorded()
        if answer is None:
            answer = speech_of(self._partner.answer([*self._messages], self._episode))
        self._log.add(answer)
        self._messages.append({"role": "assistant", "content": answer})
        return answer


class PartnerLog:
    """The replies that partners give in an episode, and those they gave when it was played before.

    Args:
        recorded: the answers that a replay repeats; further ones come from the partner.
    """

    def __init__(self, recorded: Sequence[str] = ()) -> None:
        self._recorded = [*recorded]
        self._new: list[str] = []

    def recorded(self) -> str | None:
        """The next answer of the episode before, if there is one."""
        return self._recorded.pop(0) if self._recorded else None

    def add(self, answer: str) -> None:
        """Note an answer."""
        self._new.append(answer)

    def shown(self) -> dict[str, list[str]]:
        """The entry of an info: all answers so far, for a reset; empty if there are none."""
        return {PARTNER_REPLIES: [*self._new]} if self._new else {}

    def taken(self) -> dict[str, list[str]]:
        """The entry of an info: the answers since the step before, for a step; empty if there are none.

        The first step has those of the reset, too, so that the turns of an episode have all.
        """
        shown, self._new = self.shown(), []
        return shown


def name_and_options(setting: PartnerSetting) -> tuple[str, dict[str, Any]]:
    """The name of a partner and its options.

    Raises:
        EnvKwargsError: neither a name nor a dict with a name.
    """
    if isinstance(setting, str):
        return setting, {}
    given = cast("object", setting)
    if not isinstance(given, Mapping) or not isinstance(setting.get("model"), str):
        raise EnvKwargsError(f'{setting!r} names no partner. Give a name, or {{"model": a name, ...}} with its options')
    return setting["model"], {name: value for name, value in setting.items() if name != "model"}
