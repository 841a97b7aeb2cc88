"""What adapters share: settings that cannot work together, tasks, and where turns stand in rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec
import pytest

import gem_core
from gem_core import Env
from gem_core.errors import EnvKwargsError, NotFoundError, SettingsError
from gem_train.checks import check_aggregation, check_multiple, check_rows, check_sampling
from gem_train.metrics import announcement, rollout_metrics
from gem_train.rollout import EpisodeSummary, StopReason
from gem_train.settings import RunSettings, read_section, setting


class Still(Env):
    """Ends at once."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        return "Hello.", {}

    def step(self, action: str) -> Any:
        return "", 0.0, True, False, {}

    def sample_random_action(self) -> str:
        return ""


def setup_module() -> None:
    gem_core.register("test:Still-v0", Still)


def settings(**changes: Any) -> RunSettings:
    return RunSettings(**{"env": ["test:Still-v0"], **changes})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        # together
        ({"env": []}, "env has no environment id. For example env=game:GuessTheNumber-v0-easy"),
        ({"env_weights": [1.0, 2.0]}, r"env_weights=\[1.0, 2.0\] for env=\['test:Still-v0'\]"),
        ({"env": ["a", "b"], "env_weights": [1.0, 0.0]}, "one weight above 0"),
        ({"env": ["a", "b"], "env_weights": [math.inf, 1.0]}, "one weight above 0"),
        ({"env": ["a", "a"], "env_weights": [1.0, 1.0]}, "name each once"),
        ({"history": 1}, "history=1 drops .*Use row=turn, or leave history out"),
        ({"vector_backend": "sync", "env_timeout": 5.0}, "cannot enforce env_timeout=5.0; use vector_backend=process"),
        ({"vector_backend": "sync", "vector_workers": 2}, "vector_workers=2 has no effect"),
        # no effect
        ({"lam": 0.5}, "lam=0.5 has no effect with advantage=rebn. Leave it out"),
        ({"filter_limit": 3}, "filter_limit=3 has no effect without filter_groups"),
        ({"correction_low": 0.1}, "correction_low=0.1 has no effect without correction"),
        ({"correction_high": 3.0}, "correction_high=3.0 has no effect without correction"),
        ({"correction_unit": "turn"}, "correction_unit=turn has no effect without correction"),
        ({"correction": "tis", "correction_low": 0.1}, "correction_low=0.1 has no effect with correction=tis"),
        ({"correction": "decoupled", "correction_high": 3.0}, "has no effect with correction=decoupled"),
        ({"record_share": 0.5}, "record_share=0.5 has no effect without record"),
        ({"record_folder": "runs"}, "record_folder=runs has no effect without record"),
        ({"advantage": "turn_grpo", "compaction": "policy"}, "advantage=turn_grpo compares turns at the same position"),
        # bounds
        ({"history": 0, "row": "turn"}, "history=0: Expected `int` >= 1"),
        ({"vector_workers": 0}, "vector_workers=0: Expected `int` >= 1"),
        ({"max_concurrent": 0}, "max_concurrent=0: Expected `int` >= 1"),
        ({"eval_episodes": 0}, "eval_episodes=0: Expected `int` >= 1"),
        ({"eval_episodes": 2**70}, "Expected `int` <= 1000000"),
        ({"env_timeout": 0.0}, "env_timeout=0.0: Expected `float` > 0"),
        ({"env_timeout": math.nan}, "env_timeout=nan"),
        ({"env_retries": -1}, "env_retries=-1: Expected `int` >= 0"),
        ({"max_env_failure_share": 1.0}, "max_env_failure_share=1.0: Expected `float` < 1.0"),
        ({"gamma": 1.5}, "gamma=1.5: Expected `float` <= 1.0"),
        ({"lam": -0.5}, "lam=-0.5: Expected `float` >= 0.0"),
        # types
        ({"match_cutoff": "keep"}, "match_cutoff=keep is not one of forfeit, drop."),
        ({"row": "turns"}, "row=turns is not one of episode, turn. Did you mean 'turn'"),
        ({"row": "Episode", "history": 2}, "row=Episode is not one of episode, turn. Did you mean 'episode'"),
        ({"vector_backend": "threads"}, "vector_backend=threads: no vector backend 'threads'. Did you mean 'thread'?"),
        ({"env_failure": "retry"}, "env_failure=retry is not one of truncate, drop, raise."),
        ({"env_kwargs": "raise_every=3"}, "env_kwargs=raise_every=3: 'raise_every=3' is not a JSON object"),
        ({"env_kwargs": "[1]"}, r"env_kwargs=\[1\]: .* is not a JSON object"),
        ({"env": 5}, "env=5: Expected `list`, got `int`"),
        ({"env_kwargs": 5}, "env_kwargs=5: Expected `dict`, got `int`"),
        ({"eval_episodes": 1.5}, "eval_episodes=1.5: Expected `int`, got `float`"),
        ({"vector_workers": "2"}, "vector_workers=2: Expected `int | None`, got `str`"),
        ({"truncated_is_invalid": 1}, "truncated_is_invalid=1: Expected `bool`"),
    ],
)
def test_what_cannot_work(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        settings(**changes).check()


def test_the_environments_of_an_evaluation_need_one() -> None:
    settings(eval_env=["test:Still-v0"]).check()
    with pytest.raises(SettingsError, match="has no effect without evaluations, which eval_steps switches on"):
        settings(eval_env=["test:Still-v0"]).check("eval_steps")
    settings(eval_episodes=4).check("eval_steps")  # on a command line, evaluations are switched off by themselves


def test_what_an_estimator_reads_has_an_effect() -> None:
    settings(advantage="gae", lam=0.5).check()
    settings(correction="icepop", correction_low=0.1, correction_high=3.0, correction_unit="turn").check()
    settings(filter_groups="success", filter_limit=3, record="full", record_folder="a", record_share=0.5).check()


def test_a_bound_in_updates_is_one_in_whole_batches() -> None:
    found = [settings(max_staleness=5).batches_within_bound(updates, "them") for updates in (1, 2, 4, 5)]
    assert found == [5, 2, 1, 1]
    assert settings().batches_within_bound(3, "them") == 0
    with pytest.raises(
        SettingsError, match=r"max_staleness=2 is less than the 3 updates .* Use at least 3, or change them"
    ):
        settings(max_staleness=2).batches_within_bound(3, "them")


def test_what_stands_for_a_list_or_a_dict() -> None:
    made = settings(env="a", plugins="b", env_kwargs='{"max_turns": 3}', env_weights=None, chat_template_kwargs=None)
    assert (made.env, made.plugins, made.env_kwargs) == (["a"], ["b"], {"max_turns": 3})
    assert (made.env_weights, made.chat_template_kwargs) == ([], {})
    made.env_weights.append(1.0)
    assert settings().env_weights == []


def test_what_becomes_of_a_match_that_was_cut_off_reaches_the_rollouts_of_every_framework() -> None:
    assert settings().rollout(8, None).match_cutoff == "forfeit"
    assert settings(match_cutoff="drop").rollout(8, None).match_cutoff == "drop"


@dataclass(kw_only=True)
class Flags(RunSettings):
    """As users of a command line write them; the framework has a discount of its own."""

    prefix: ClassVar[str] = "--gem."
    separator: ClassVar[str] = " "
    owned: ClassVar[Mapping[str, str]] = {"gamma": "--discount"}
    steps: int = setting(1, "Batches.")


def test_names_are_those_of_the_framework() -> None:
    with pytest.raises(SettingsError, match=r"--gem.history 1 drops .*Use --gem.row turn, or leave --gem.history out"):
        Flags(env=["a"], history=1).check()
    with pytest.raises(SettingsError, match=r"--gem.modules: cannot import 'no_such_module'"):
        Flags(env=["a"], modules=["no_such_module"]).import_modules()
    with pytest.raises(SettingsError, match=r"--gem.wrappers: cannot load 'json'"):
        Flags(env=["a"], wrappers=["json"]).load_wrappers()
    for path in (":json", "json:", ".json:loads"):
        with pytest.raises(SettingsError, match=rf"--gem.wrappers: cannot load '{path}': it is not"):
            Flags(env=["a"], wrappers=[path]).load_wrappers()
    for module in ("", ".json"):
        with pytest.raises(SettingsError, match=rf"--gem.modules: '{module}' is not the full name of a module"):
            Flags(env=["a"], modules=[module]).import_modules()
    with pytest.raises(SettingsError, match=r"--gem.steps many: Expected `int`"):
        Flags(steps="many")  # pyright: ignore[reportArgumentType]
    with pytest.raises(SettingsError, match=r"--discount 2.0: Expected `float` <= 1.0"):
        Flags(gamma=2.0)


def test_names_that_users_cannot_set() -> None:
    with pytest.raises(SettingsError, match=r"there is no setting --gem.hystory. Did you mean '--gem.history'"):
        Flags.check_names(["env", "hystory"])
    with pytest.raises(SettingsError, match=r"--gem.gamma cannot be set here. Use --discount"):
        Flags.check_names(["gamma"])
    with pytest.raises(SettingsError, match=r"there is no setting --gem.sistem_prompt. Did you mean"):
        read_section(Flags, {"env": "a", "sistem_prompt": "Hello."})
    assert read_section(Flags, {"env": "a", "steps": 3}) == Flags(env=["a"], steps=3)
    assert {*Flags.declared()} == {*RunSettings.declared(), "steps"} == {*Flags.offered(), "gamma"}


def test_sampling_is_from_the_policy_that_is_trained() -> None:
    def spelled(name: str, value: object) -> str:
        return f"{name}={value}"

    neutral = {"top_p": 1.0, "top_k": 0, "min_p": None, "repetition_penalty": 1.0, "max_tokens": 8}
    check_sampling({**neutral, "temperature": 0.7}, spelled, scaled=True)
    check_sampling({**neutral, "top_k": -1, "temperature": 1}, spelled, scaled=False)
    for name, value in {"top_p": 0.9, "top_k": 50, "min_p": 0.1, "repetition_penalty": 1.2}.items():
        with pytest.raises(SettingsError, match=f"{name}={value} samples from another policy.*silently change"):
            check_sampling({**neutral, name: value}, spelled, scaled=True)
    with pytest.raises(SettingsError, match=r"temperature=0.7 samples from another policy.*does not divide"):
        check_sampling({"temperature": 0.7}, spelled, scaled=False)
    with pytest.raises(SettingsError, match="temperature=0: training samples"):
        check_sampling({"temperature": 0}, spelled, scaled=True)


def test_checks_of_a_frameworks_own_settings() -> None:
    check_multiple(64, "64 episodes", 16, "--batch 16", "the number of updates")
    with pytest.raises(SettingsError, match="64 episodes is not a multiple of --batch 24; the number of updates"):
        check_multiple(64, "64 episodes", 24, "--batch 24", "the number of updates")
    check_aggregation("mode=sum", "sum", ["sum"])
    with pytest.raises(SettingsError, match=r"mode=mean averages each row by its own length.*Use one of sum"):
        check_aggregation("mode=mean", "mean", ["sum"])
    check_rows(settings(row="turn"), {"loss=gspo": True})
    check_rows(settings(), {"loss=gspo": False})
    with pytest.raises(SettingsError, match=r"loss=gspo treats all turns of a row as one response.*Use row=turn"):
        check_rows(settings(), {"loss=gspo": True})


def test_groups() -> None:
    settings().check_groups(1, "n=1")
    settings(advantage="grpo").check_groups(2, "n=2")
    with pytest.raises(SettingsError, match="advantage=grpo compares the episodes of a task, so n=1 cannot work"):
        settings(advantage="grpo").check_groups(1, "n=1")


def test_environments_are_built_once_before_anything_starts() -> None:
    settings().check_environments(4, "batch=4")
    with pytest.raises(NotFoundError, match="Stil-v0"):
        settings(eval_env=["test:Stil-v0"]).check_environments(4, "batch=4")
    with pytest.raises(EnvKwargsError, match="turns"):
        settings(env_kwargs={"turns": 3}).check_environments(4, "batch=4")
    two = ["test:Still-v0", "game:Corridor-v0"]
    with pytest.raises(SettingsError, match="batch=1: 2 environment ids for 1 slots"):
        settings(env=two).check_environments(1, "batch=1")
    with pytest.raises(SettingsError, match="max_concurrent=1: 2 environment ids"):
        settings(env=two, max_concurrent=1).check_environments(4, "batch=4")


def test_a_process_has_room_for_each_environment() -> None:
    rare = settings(env=["a", "b"], env_weights=[9.0, 1.0])
    assert rare.concurrent("train", 3) == 10
    assert rare.concurrent("train", 64) == 64
    assert settings(max_concurrent=2).concurrent("eval", 64) == 2


def test_arguments_of_one_environment_need_not_be_known_to_the_other_split() -> None:
    gem_core.register("demo-split:A-v0", Still)
    gem_core.register("demo-split:B-v0", Still)
    chosen = {"env": ["demo-split:A-v0"], "eval_env": ["demo-split:B-v0"]}
    settings = RunSettings(**chosen, env_kwargs={"demo-split:A-v0": {}, "demo-split:B-v0": {}})
    settings.check_environments(8, "batch=8")
    assert settings.kwargs_of("train") == {"demo-split:A-v0": {}}
    assert settings.kwargs_of("eval") == {"demo-split:B-v0": {}}
    assert RunSettings(**chosen, env_kwargs={"a": 1}).kwargs_of("eval") == {"a": 1}
    with pytest.raises(SettingsError, match=r"names 'demo-split:C-v0', which is not among"):
        RunSettings(**chosen, env_kwargs={"demo-split:C-v0": {}}).check_environments(8, "batch=8")


def test_the_announcement_names_what_is_at_work() -> None:
    metrics = {"advantage/turns": 40.0, "advantage/return_mean": 0.5, "advantage/return_std": 0.25}
    line = announcement("rebn", 0.9, "turn", {**metrics, **rollout_metrics([], 3), "rollout/episodes": 8.0}, "beta=0.1")
    assert line == (
        "rebn active: 40 turns from 8 episodes, return-to-go mean 0.500, std 0.250, gamma 0.9; a row is a turn; "
        "acting: beta=0.1"
    )
    assert rollout_metrics([], 3)["rollout/dropped"] == 3.0


def test_a_failure_counts_whether_its_episode_is_dropped_or_not() -> None:
    summary = EpisodeSummary("a:b", 0, 0, StopReason.TERMINATED, True, None, 1, 1.0, 1, 0, 0)
    failed = msgspec.structs.replace(summary, stop_reason=StopReason.ENV_ERROR, error="it broke")
    kept, dropped = rollout_metrics([summary, summary, summary, failed], 0), rollout_metrics([summary] * 3, 1)
    for name in ("env/errors", "stop/env_error", "stop/terminated"):
        assert kept[name] == dropped[name]
    assert (kept["env/errors"], kept["stop/env_error"], dropped["rollout/dropped"]) == (1.0, 0.25, 1.0)
    assert rollout_metrics([], 2)["stop/env_error"] == 1.0
