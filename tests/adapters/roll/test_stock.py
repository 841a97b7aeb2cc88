"""ROLL's own environment managers, as they are and as `gem_roll.stock` mends them, with our environments."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gem_core

pytestmark = [pytest.mark.needs_roll, pytest.mark.timeout(300)]

ENDS_AT = 3
STEPS = 7
"""How many ROLL allows; an episode that was truncated before should not come to it."""


class Truncating(gem_core.Env):
    """Ends by truncation after three turns."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turns = 0
        return f"begin {seed}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turns += 1
        return f"turn {self.turns}", 1.0, False, self.turns >= ENDS_AT, {}

    def sample_random_action(self) -> str:
        return "north"


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A Ray of the tests' own, for ROLL's queue."""
    from gem_cpu.roll import on_cpu

    with on_cpu():
        yield


@pytest.fixture(scope="module", autouse=True)
def _environments() -> None:
    gem_core.register("test:Truncating-v0", Truncating)
    register_gem_environment()


def register_gem_environment() -> None:
    """The same, made for the installed `gem` by hand, as users of ROLL do today."""
    import gem

    class Plain(Truncating, gem.Env):
        def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
            return super().reset(seed)[0], {"env_instruction": "", "suffix": "", "metrics": {}}

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            return (*super().step(action)[:4], {"metrics": {}})

    gem.register("plain", Plain)


@pytest.fixture(scope="module")
def config(model_folder: Path) -> Callable[..., Any]:
    """A function that gives ROLL's own configuration for one environment."""
    from dacite import from_dict
    from roll.pipeline.agentic.agentic_config import AgenticConfig
    from roll.pipeline.agentic.llm_proxy import BaseLLMProxy, register_llm_proxy

    @register_llm_proxy("test_same_words")
    class SameWords(BaseLLMProxy):
        def generate(self, messages: Any, lm_input: Any, generation_config: Any) -> Any:
            import torch
            from roll.distributed.scheduler.protocol import DataProto
            from tensordict import TensorDict

            ids = torch.tensor([[*self.tokenizer.encode("north"), self.tokenizer.eos_token_id]])
            return DataProto(batch=TensorDict({"responses": ids}, batch_size=1))

    def make(manager: str, env_type: str, env_config: dict[str, Any], **more: Any) -> Any:
        worker = {
            "num_env_groups": 1,
            "group_size": 1,
            "tags": ["one"],
            "num_groups_partition": [1],
            "llm_proxy": {"proxy_type": "test_same_words"},
        }
        entry = {
            "env_type": env_type,
            "env_manager_cls": manager,
            "env_config": env_config,
            "max_steps": STEPS,
            "max_tokens_per_step": 4,
            "agent_system_template": None,
            "agent_template": "{history} {current_observation}",
        }
        engine = {"generating_args": {"max_new_tokens": 4}, "device_mapping": "[1]"}
        values = {
            "exp_name": "stock",
            "logging_dir": os.environ["ROLL_LOG_DIR"],
            "pretrain": str(model_folder),
            "rollout_batch_size": 1,
            "val_batch_size": 1,
            "sequence_length": 256,
            "init_kl_coef": 0.0,
            "adv_estimator": "step_reinforce",
            "env_monitor": {"enable": False},
            "actor_train": {"device_mapping": "[0]"},
            "actor_infer": engine,
            "train_env_manager": worker,
            "val_env_manager": dict(worker),
            "custom_envs": {"one": entry},
        }
        return from_dict(data_class=AgenticConfig, data={**values, **more})

    return make


def play(config: Any, tokenizer: Any) -> Any:
    """One episode by the manager that the configuration names, through ROLL's own queue: its rows."""
    import ray
    from roll.distributed.scheduler.protocol import DataProto
    from roll.distributed.scheduler.rollout_scheduler import GroupQueueManager
    from roll.utils.import_utils import safe_import_class

    worker = config.train_env_manager
    queue = GroupQueueManager.options(max_concurrency=4).remote(config, worker, "train")
    (entry,) = worker.env_configs[0].values()
    kind = safe_import_class(entry["env_manager_cls"])
    manager = kind(worker, config, entry, tokenizer, None, queue, threading.Lock(), mode="train")
    manager.update_step(0, {})
    ray.get(queue.advance_step.remote(0))
    thread = threading.Thread(target=manager.run_rollout_loop, args=(DataProto(meta_info={"seed": 0}),), daemon=True)
    thread.start()
    (rows,) = ray.get(queue.get_batch.remote(1, 0), timeout=60)
    manager.stop()
    ray.get(queue.shutdown.remote())
    thread.join(30)
    assert not thread.is_alive()
    return rows


STOCK = "roll.pipeline.agentic.env_manager.step_concat_env_manager.StepConcatEnvManager"
BRIDGED = ("gem-core", {"env": "test:Truncating-v0"})


@pytest.mark.parametrize("environment", [("plain", {}), BRIDGED])
def test_rolls_own_manager_goes_on_after_truncation(cluster: None, config: Any, words: Any, environment: Any):
    import gem_roll.stock  # noqa: F401  ROLL's manager needs the bridge, and nothing else of it

    rows = play(config(STOCK, *environment), words)
    assert len(rows) == STEPS > ENDS_AT


@pytest.mark.parametrize("kind", ["StepConcatEnvManager", "StepEnvManager", "TrajEnvManager"])
def test_a_mended_manager_ends_with_the_episode(cluster: None, config: Any, words: Any, kind: str):
    template = {"agent_template": "{observation}"} if kind == "TrajEnvManager" else {}
    made = config(f"gem_roll.stock.{kind}", *BRIDGED)
    made.custom_envs["one"].update(template)
    rows = play(made, words)
    assert len(rows) == (1 if kind == "TrajEnvManager" else ENDS_AT)
    assert rows.non_tensor_batch["episode_scores"][0] == ENDS_AT


def test_a_mended_manager_refuses_advantages_that_are_all_zero(cluster: None, config: Any, words: Any):
    silent = {"reward_normalization": {"grouping": "traj_group_id", "method": "mean"}}
    made = config("gem_roll.stock.StepConcatEnvManager", *BRIDGED, **silent)
    with pytest.raises(gem_core.errors.SettingsError, match="all advantages are zero"):
        play(made, words)
