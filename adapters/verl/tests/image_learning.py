"""Runs of verl with images, by hand (`nox -s verl_images`): exact ids, and a tiny model that learns to count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from runs import Run, train, trained_responses
from transformers import AutoModelForImageTextToText

import gem_core
from gem_support import glance
from gem_support.training_run import SECONDS
from gem_tiny import tiny_image_processor, tiny_tokenizer, tiny_vision_model, vision_start
from gem_train.rollout import ImageReader

ENV = "visual:Count-v0-easy"
STEPS = 80
FLAGS = [
    f"gem.env={ENV}",
    "gem.eval_episodes=200",
    "gem.max_response_tokens=6",
    "algorithm.adv_estimator=drgrpo",
    "data.train_batch_size=16",
    "data.max_prompt_length=64",
    "data.max_response_length=8",
    "actor_rollout_ref.rollout.n=16",
    "actor_rollout_ref.rollout.val_kwargs.temperature=1.0",
    "actor_rollout_ref.rollout.val_kwargs.do_sample=True",
    "actor_rollout_ref.actor.ppo_mini_batch_size=16",
    "actor_rollout_ref.actor.entropy_coeff=0",
    "actor_rollout_ref.actor.optim.lr=3e-4",
    "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
    f"trainer.total_training_steps={STEPS}",
    f"trainer.test_freq={STEPS}",
    "trainer.val_before_train=True",
]


EXACT = [
    f"gem.env={glance.ENV}",
    "gem.max_response_tokens=3",
    "gem.truncated_is_invalid=False",
    "data.train_batch_size=8",
    "data.max_prompt_length=64",
    "data.max_response_length=64",
    "actor_rollout_ref.actor.ppo_mini_batch_size=8",
    "actor_rollout_ref.actor.optim.lr=1e-3",
    "actor_rollout_ref.actor.checkpoint.save_contents=[hf_model]",
    "trainer.total_training_steps=3",
    "trainer.save_freq=3",
]


def saved(folder: Path, *parts: Any) -> Path:
    for part in parts:
        part.save_pretrained(folder)
    return folder


@pytest.mark.timeout(SECONDS * 2)
@pytest.mark.uncertain("a real run: Ray has its own time limits")
@pytest.mark.parametrize("ahead", [0, 1])
def test_sampled_ids_are_trained_and_the_vision_tower_moves(tmp_path: Path, ahead: int) -> None:
    glance.register()
    tokenizer = tiny_tokenizer([glance.ENV], episodes=20, images=True)
    network = tiny_vision_model(tokenizer, hidden=32, layers=1, seed=0)
    model = saved(tmp_path / "model", network, tokenizer, tiny_image_processor())
    run = train(tmp_path, model, [*EXACT, f"gem.max_staleness={ahead}"])
    assert run.code == 0, run.output
    pieces = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in run.sampled)
    trained = Counter((one.before, one.ids) for batch in run.batches for one in trained_responses(batch))
    assert len(run.batches) == 3
    assert all(was_sampled(before, ids, pieces) for before, ids in trained)
    assert ahead or trained == pieces
    assert any(episode.images for episode in run.episodes)
    after = AutoModelForImageTextToText.from_pretrained(checkpoint(run), dtype=torch.float32)
    moved = [
        name
        for (name, old), new in zip(network.named_parameters(), after.parameters(), strict=True)
        if not torch.equal(old, new)
    ]
    assert sum("visual" in name for name in moved) > 3


def was_sampled(before: tuple[int, ...], ids: tuple[int, ...], pieces: Counter[Any]) -> bool:
    """Whether a response is a piece, or pieces one after the other: a weight update interrupts a response, and the rest
    is asked for after what was sampled.

    Args:
        before: the ids before the response.
        ids: of the response.
        pieces: the prompt and the ids of each request.
    """
    return not ids or any(
        pieces[before, ids[:end]] and was_sampled((*before, *ids[:end]), ids[end:], pieces)
        for end in range(1, len(ids) + 1)
    )


def checkpoint(run: Run) -> Path:
    return run.folder / "checkpoints" / "global_step_3" / "actor" / "huggingface"


@pytest.mark.timeout(SECONDS * 4)
@pytest.mark.uncertain("learning depends on the sampled episodes, and Ray has its own time limits")
@pytest.mark.parametrize("seed", [0])
def test_a_model_learns_to_count(tmp_path: Path, seed: int) -> None:
    torch.set_num_threads(1)
    tokenizer = tiny_tokenizer([ENV], episodes=50, images=True)
    model, processor = tiny_vision_model(tokenizer, seed=seed), tiny_image_processor()
    reader = ImageReader(processor, model.config.image_token_id)
    # As in TRL: a start that is right by chance alone (0.25) is too little.
    vision_start(model, tokenizer, reader, gem_core.make(ENV), lambda env: env.expert_action(), steps=55, seed=seed)
    folder = saved(tmp_path / "model", model, tokenizer, processor)
    run = train(tmp_path, folder, [*FLAGS, f"gem.seed={seed}"])
    assert run.code == 0, run.output
    found = [line["eval_episode/success"] for line in run.lines if "eval_episode/success" in line]
    print(f"seed {seed}: success of sampled answers {found[0]:.2f} before, {found[-1]:.2f} after {STEPS} updates")
    assert found[-1] >= found[0] + 0.3
    assert found[-1] >= 0.85
