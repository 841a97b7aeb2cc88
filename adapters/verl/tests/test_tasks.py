"""Environments as verl's data set of tasks."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig
from tensordict import NonTensorStack
from torchdata.stateful_dataloader import StatefulDataLoader
from verl.trainer.ppo.utils import create_rl_dataset, create_rl_sampler
from verl.utils import tensordict_utils as tu
from verl.utils.dataset.rl_dataset import collate_fn

from gem_core.errors import SettingsError
from gem_support.same_tasks import FIRST_BATCH
from gem_verl._tasks import ENDLESS, EnvTasks

TWO = "gem.env=[test:Babble-v0,game:Corridor-v0]"


@pytest.fixture
def tasks(configure: Callable[..., DictConfig]) -> Callable[..., Any]:
    """A function that makes the data set as verl does."""

    def make(split: str, *flags: str) -> EnvTasks:
        config = configure(*flags)
        files = config.data.train_files if split == "train" else config.data.val_files
        made = create_rl_dataset(files, config.data, None, None, is_train=split == "train", max_samples=-1)
        assert type(made) is EnvTasks
        return made

    return make


def names(rows: EnvTasks, count: int) -> list[str]:
    return [rows[index]["env_id"] for index in range(count)]


def test_rows_name_environment_and_task(tasks):
    rows = tasks("train")
    assert len(rows) == ENDLESS
    for index in (0, 5, 10**9):
        row = rows[index]
        assert (row["env_id"], row["task_id"], row["index"], row["split"]) == ("test:Babble-v0", index, index, "train")
        assert (row["agent_name"], row["data_source"], row["raw_prompt"]) == ("gem", "test:Babble-v0", [])


def test_no_epoch_ends(tasks):
    rows = tasks("train")
    steps_per_epoch = len(rows) // 8
    assert steps_per_epoch > 10**9, "verl stops after total_epochs otherwise"


def test_validation_has_the_set_number_of_tasks(tasks):
    rows = tasks("eval", "gem.eval_episodes=6")
    assert len(rows) == 6
    assert {rows[index]["split"] for index in range(6)} == {"eval"}


def test_environments_share_each_batch_by_weight(tasks):
    rows = tasks("train", TWO, "gem.env_weights=[3,1]", "data.train_batch_size=8")
    for batch in range(3):
        shares = Counter(names(rows, 24)[8 * batch : 8 * batch + 8])
        assert shares == {"test:Babble-v0": 6, "game:Corridor-v0": 2}
    assert names(rows, 8) == [env_id for env_id, _ in FIRST_BATCH]


def test_each_environment_counts_its_own_rows(tasks):
    rows = tasks("train", TWO, "gem.env_weights=[3,1]", "data.train_batch_size=8")
    played: dict[str, list[int]] = {}
    for index in range(24):
        played.setdefault(rows[index]["env_id"], []).append(rows[index]["data_index"])
    assert played == {"test:Babble-v0": [*range(18)], "game:Corridor-v0": [*range(6)]}


def test_an_environment_listed_twice_has_a_double_share(tasks):
    rows = tasks("train", "gem.env=[test:Babble-v0,game:Corridor-v0,test:Babble-v0]", "data.train_batch_size=9")
    assert Counter(names(rows, 9)) == {"test:Babble-v0": 6, "game:Corridor-v0": 3}


def test_validation_has_its_own_environments(tasks):
    rows = tasks("eval", TWO, "gem.eval_env=game:Corridor-v0", "gem.eval_episodes=4")
    assert names(rows, 4) == ["game:Corridor-v0"] * 4
    assert Counter(names(tasks("eval", TWO), 8)) == {"test:Babble-v0": 4, "game:Corridor-v0": 4}


def test_weights_are_those_of_training(tasks):
    """`eval_env` has no weights, so its environments have equal shares, whatever the weights of training."""
    rows = tasks("eval", TWO, "gem.env_weights=[7,1]", "gem.eval_env=[test:Babble-v0,game:Corridor-v0]")
    assert Counter(names(rows, 8)) == {"test:Babble-v0": 4, "game:Corridor-v0": 4}
    assert Counter(names(tasks("eval", TWO, "gem.env_weights=[7,1]"), 8)) == {
        "test:Babble-v0": 7,
        "game:Corridor-v0": 1,
    }


def test_the_same_rows_every_time(tasks):
    first, again = tasks("train", TWO), tasks("train", TWO)
    for index in range(20):
        one, two = first[index], again[index]
        assert torch.equal(one.pop("dummy_tensor"), two.pop("dummy_tensor"))
        assert one == two


def test_an_environment_that_would_never_play(tasks):
    with pytest.raises(ValueError, match=r"game:Corridor-v0.*never be played"):
        tasks("train", TWO, "data.train_batch_size=1")


def test_wrong_settings_give_clear_errors(tasks):
    with pytest.raises(SettingsError, match=r"gem.eval_episodes=many: Expected `int`, got `str`"):
        tasks("eval", "gem.eval_episodes=many")


def test_verl_batches_them(tasks, configure):
    rows = tasks("train", TWO)
    config = configure(TWO)
    loader = StatefulDataLoader(
        rows,
        batch_size=8,
        num_workers=0,
        drop_last=True,
        collate_fn=collate_fn,
        sampler=create_rl_sampler(config.data, rows),
    )
    batches = iter(loader)
    seen: list[int] = []
    for _ in range(2):
        batch = next(batches)
        # As in `PPOTrainer._fetch_one_gen_batch`.
        batch["uid"] = np.array([str(uuid.uuid4()) for _ in range(len(batch["raw_prompt"]))], dtype=object)
        whole = tu.get_tensordict(batch)
        tu.assign_non_tensor_data(whole, "global_steps", 1)
        parts = whole.chunk(2)  # to two agent workers
        assert [len(part) for part in parts] == [4, 4]
        for part in parts:
            for number in range(len(part)):
                # As in `AgentLoopWorkerTQ.generate_sequences`.
                row = {
                    name: part.get(name)[number] for name in ("task_id", "data_index", "env_id", "split", "raw_prompt")
                }
                assert all(isinstance(part.get(name), NonTensorStack) for name in row)
                plain = {name: value.data for name, value in row.items()}
                seen.append(plain["task_id"])
                want = rows[plain["task_id"]]
                assert plain == {name: want[name] for name in plain}
                assert type(plain["task_id"]) is int
    assert seen == [*range(16)]


def test_a_loader_continues_where_it_stopped(tasks, configure):
    def loader() -> Any:
        rows = tasks("train")
        sampler = create_rl_sampler(configure().data, rows)
        return StatefulDataLoader(rows, batch_size=8, num_workers=0, collate_fn=collate_fn, sampler=sampler)

    first = loader()
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    again = loader()
    again.load_state_dict(state)
    assert [*next(iter(again))["task_id"]] == [*next(batches)["task_id"]] == [*range(8, 16)]
