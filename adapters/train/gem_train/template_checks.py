"""Checks of a chat template at the start of a run, so that nothing it cannot do shows hours later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, get_args

from gem_core.env import Env, Wrapper
from gem_core.errors import SettingsError, TemplateError
from gem_core.registry import build, spec
from gem_train.rollout import ChatTemplate, RolloutSettings
from gem_train.settings import RunSettings, Split

_PROBE: dict[str, Any] = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}},
}


def check_template(template: ChatTemplate, rollout: RolloutSettings, ends: Sequence[int], limits: str) -> None:
    """Refuse a template with which no response could ever end or fit.

    A text-form tool needs no check: without a role `tool`, its result is a user's message.

    Args:
        template: of the conversations.
        rollout: how episodes become prompts.
        ends: ids that end a response; see `end_token_ids`.
        limits: how users set the token limits, with their values.

    Raises:
        SettingsError: nothing ends a response, or the limits are too small for what the template itself writes.
    """
    if not ends and rollout.truncated_is_invalid:
        raise SettingsError(
            "nothing ends a response: the chat template ends turns with words, and neither the tokenizer nor the "
            "generation config names an end. Every response would be cut off. Set tokenizer.eos_token, or use a chat "
            "template that ends turns with a special token"
        )
    (header, count), response = template.answer_header, rollout.max_response_tokens
    if header and response < count + 2:
        raise SettingsError(
            f"{limits}: before its first word, the policy itself samples {header!r}, which takes {count} tokens, so "
            f"each response would be cut off. Allow at least {count + 2} tokens"
        )
    shortest, limit = len(template.initial_prompt(".")), rollout.max_context_tokens
    if limit is not None and shortest + response > limit:
        raise SettingsError(
            f"{limits}: the chat template with the system prompt takes {shortest} tokens around a message, and a "
            f"response up to {response}, so no prompt fits into {limit} tokens. Raise the limit of the context, or "
            "lower that of a response"
        )


def check_tools(template: ChatTemplate, env: Env) -> None:
    """Refuse an environment with native tools over a template that does not show them.

    Raises:
        TemplateError: see `ChatTemplate.with_tools`; the message names the environment.
    """
    if not _has_native_tools(env):
        return
    try:
        template.with_tools([_PROBE])
    except TemplateError as error:
        raise TemplateError(f"{env!r} has native tools, and {error}") from error


def check_conversations(
    settings: RunSettings,
    template: ChatTemplate,
    rollout: RolloutSettings,
    ends: Sequence[int],
    limits: str,
    wrappers: Sequence[Callable[[Env], Env]] = (),
) -> None:
    """Both checks, for all environments of a run. Builds and closes one environment per id.

    Args:
        settings: of the run.
        template, rollout, ends, limits: as for `check_template`.
        wrappers: applied after those of the settings.

    Raises:
        SettingsError, TemplateError: as `check_template` and `check_tools`.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
    """
    check_template(template, rollout, ends, limits)
    for split in get_args(Split):
        for env_id in settings.weights(split):
            kwargs = settings.kwargs_of(split)
            own = kwargs.get(env_id, {}) if any(":" in name for name in kwargs) else kwargs
            with build(spec(env_id), own, [*settings.load_wrappers(), *wrappers]) as env:
                check_tools(template, env)


def _has_native_tools(env: Env) -> bool:
    return vars(env).get("form") == "native" or (isinstance(env, Wrapper) and _has_native_tools(env.env))
