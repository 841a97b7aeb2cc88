"""A model in the role of a customer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gem_core.partner import Partner, PartnerConversation, PartnerLog

END = "[END]"
"""What the model writes once it has nothing left to say."""
GREETING = "Hello! What can I do for you?"
"""What the model answers with its first message. The policy does not see it."""
_READ = 4000
"""Characters of a reply that the model reads."""

_ROLE = f"""You are a customer of a shop and write to its service desk. Stay in this role.
Write one short message at a time, as a person would. Do not tell everything at once: begin with your wish, and tell the
rest when the desk asks for it, or when it is needed next. You know only what stands below. If the desk asks for
something else, say that you do not know. Agree to what the desk proposes if it fits your wish.
Once the desk has done what you want, or has said that it cannot, answer with {END} and nothing else.

Your wish, and what you know:
"""


def role_of(script: Mapping[str, Any]) -> str:
    """The role of a model that has the wish of a script; see `gem_desk._customer.Customer.of`."""
    known = [script["opening"], *(detail["says"] for detail in script["details"])]
    return _ROLE + "\n".join(f"- {one}" for one in known)


class ModelCustomer:
    """Has a wish, and words of its own.

    Args:
        role: the wish and how to behave. It says that `END` ends the conversation.
        opening: the first words where the model has none.
        partner: the model.
        episode, log: as for `PartnerConversation`.

    Raises:
        EnvError: the model gave no answer.
    """

    def __init__(self, role: str, opening: str, partner: Partner, episode: str, log: PartnerLog) -> None:
        self._conversation = PartnerConversation(partner, episode, log, role)
        self.opening = self._conversation.ask(GREETING).replace(END, "").strip() or opening

    def answer(self, reply: str) -> str | None:
        """The answer to a reply; `None` means that the customer has left. Raises `EnvError` without an answer."""
        answer = self._conversation.ask(reply[:_READ]).strip()
        return None if END in answer else answer
