"""TRL trains on images: on the ids that were sampled, with the patches that the sampler saw."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from spy import SpyTrainer

from gem_core.episode import as_token_ids
from gem_core.errors import SettingsError, TemplateError
from gem_support import glance
from gem_tiny import tiny_image_processor, tiny_model, tiny_tokenizer, tiny_vision_model
from gem_train.rollout import Episode, ImagePrompt, ImageReader, images_in
from gem_train.rows import rows_of

CHANGES = {"env": glance.ENV, "max_completion_length": 3, "optim": "sgd", "learning_rate": 0.1, "max_grad_norm": 1e9}


class Watch(SpyTrainer):
    """Keeps the weights that sampled, and the fields of each call of TRL's generation."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.fields: list[tuple[list[list[int]], dict[str, Any]]] = []
        super().__init__(*args, **kwargs)

    def _generate_single_turn(self, prompt_ids: Any, images: Any, fields: Any, *args: Any, **kwargs: Any) -> Any:
        self.fields.append((prompt_ids, fields))
        return super()._generate_single_turn(prompt_ids, images, fields, *args, **kwargs)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    glance.register()
    return tiny_tokenizer([glance.ENV], episodes=20, images=True)


@pytest.fixture
def image_trainer(settings, tokenizer):
    """A function that makes a trainer of a tiny vision-language model; its arguments go to the configuration."""

    def make(**changes: Any) -> Watch:
        model = tiny_vision_model(tokenizer, hidden=32, layers=1, seed=0)
        return Watch(model, settings(**{**CHANGES, **changes}), tokenizer, image_processor=tiny_image_processor())

    return make


def reader_of(run: Watch) -> ImageReader:
    assert run._images is not None
    return run._images


def logprobs(model: Any, reader: ImageReader, ids: Any, uris: list[str]) -> torch.Tensor:
    """(ids - 1,) log-probabilities of each id after the first, from one sequence without padding."""
    row = torch.tensor([list(ids)])
    seen = [reader.read(uri) for uri in uris]
    fields: dict[str, Any] = {}
    if seen:
        fields = {
            "pixel_values": torch.cat([torch.from_numpy(one.pixels) for one in seen]),
            "image_grid_thw": torch.tensor([one.grid for one in seen]),
            "mm_token_type_ids": (row == reader.placeholder).int(),
        }
    logits = model(input_ids=row, attention_mask=torch.ones_like(row), **fields).logits
    return logits[0, :-1].log_softmax(-1).gather(-1, row[0, 1:, None])[:, 0]


def loss_of(model: Any, reader: ImageReader, episodes: list[Episode], limit: int) -> torch.Tensor:
    """REINFORCE with returns-to-go that are normalized over all turns, by hand."""
    returns = [[sum(turn.reward for turn in one.turns[place:]) for place in range(len(one.turns))] for one in episodes]
    flat = torch.tensor([number for one in returns for number in one], dtype=torch.float64)
    total = torch.zeros(())
    for episode, numbers in zip(episodes, returns, strict=True):
        [row] = rows_of(episode, "episode")
        scores = logprobs(model, reader, row.ids, [one.uri for one in row.images])
        for turn, number in zip(row.turns, numbers, strict=True):
            advantage = (number - flat.mean()) / (flat.std(correction=0) + 1e-8)
            total = total - float(advantage) * scores[turn.start - 1 : turn.end - 1].sum()
    return total / (len(episodes) * limit)


@pytest.mark.parametrize(("row", "history"), [("episode", None), ("turn", 1)])
def test_trained_ids_and_patches_are_the_sampled_ones(image_trainer, row, history):
    run = image_trainer(row=row, history=history, max_steps=2)
    run.train()
    reader = reader_of(run)
    assert sorted((one.before, one.ids) for one in run.trained_responses()) == sorted(run.sampled)
    assert not any(reader.reserved & {*ids} for _, ids in run.sampled)
    counts = {sum(one.turn == 0 for one in episode.images) for batch in run.batches for episode in batch.episodes}
    assert counts == {0, 1, 2}
    for prompts, fields in run.fields:
        placeholders = sum(prompt.count(reader.placeholder) for prompt in prompts)
        assert placeholders * 4 == len(fields.get("pixel_values", []))
    for part in run.micro_batches:
        ids = torch.cat([part["prompt_ids"], part["completion_ids"]], dim=1)
        assert (ids == reader.placeholder).sum() * 4 == len(part["pixel_values"])
        assert torch.equal(part["mm_token_type_ids"], (ids == reader.placeholder).int())


def test_the_sampler_sees_each_image_in_its_place(image_trainer):
    run = image_trainer()
    run.train()
    reader, episodes = reader_of(run), run.batches[0].episodes
    assert len(run.fields) == 2  # all environments answer each turn
    for number, (prompts, fields) in enumerate(run.fields):
        assert prompts == [episode.prompt_ids(episode.turns[number]).tolist() for episode in episodes]
        uris = [one.uri for episode in episodes for one in episode.images if one.turn <= number]
        patches = torch.cat([torch.from_numpy(reader.read(uri).pixels) for uri in uris])
        assert torch.equal(fields["pixel_values"], patches)


def test_an_update_equals_autograd(image_trainer):
    run = image_trainer(lr_scheduler_type="constant", weight_decay=0.0, gamma=1.0)
    twin = tiny_vision_model(run.processing_class, hidden=32, layers=1, seed=0).eval()
    run.train()
    episodes = run.batches[0].episodes
    loss_of(twin, reader_of(run), episodes, limit=3).backward()
    moved = 0
    for (name, after), before in zip(run.model.named_parameters(), twin.parameters(), strict=True):
        gradient = torch.zeros_like(before) if before.grad is None else before.grad
        torch.testing.assert_close(after.detach(), before.detach() - 0.1 * gradient, atol=2e-6, rtol=1e-4, msg=name)
        moved += "visual" in name and bool(gradient.abs().max() > 1e-6)
    assert moved > 3


def test_log_probabilities_of_the_sampler_have_the_images_too(image_trainer):
    run = image_trainer(num_iterations=2, max_steps=2)
    twin = tiny_vision_model(run.processing_class, hidden=32, layers=1, seed=0).eval()
    run.train()
    rows: dict[tuple[int, ...], list[list[str]]] = {}  # two rows may have the same ids and other images
    for row in (row for episode in run.batches[0].episodes for row in rows_of(episode, "episode")):
        rows.setdefault(tuple(row.ids), []).append([one.uri for one in row.images])
    for part in run.micro_batches:
        for place, old in enumerate(part["old_per_token_logps"]):
            prompt = part["prompt_ids"][place][part["prompt_mask"][place].bool()].tolist()
            mask = part["completion_mask"][place].bool()
            ids = (*prompt, *part["completion_ids"][place][mask].tolist())
            with torch.no_grad():
                found = [logprobs(twin, reader_of(run), ids, uris)[len(prompt) - 1 :] for uris in rows[ids]]
            assert min((old[mask] - one).abs().max() for one in found) < 1e-4


def test_a_prompt_has_its_images():
    prompt = ImagePrompt(as_token_ids([1, 2]), ["uri"])
    assert prompt.tolist() == [1, 2]
    assert images_in(prompt) == ["uri"]
    assert images_in(prompt[:]) == ()


def test_a_model_of_text_refuses_images_before_the_first_batch(settings, tokenizer):
    with pytest.raises(SettingsError, match=r"visual:Count-v0-easy shows images, and no image processor was given"):
        Watch(tiny_model(tokenizer), settings(**{**CHANGES, "env": "visual:Count-v0-easy"}), tokenizer)
    with pytest.raises(SettingsError, match="a model of the type 'qwen3' reads text only"):
        Watch(tiny_model(tokenizer), settings(**CHANGES), tokenizer, image_processor=tiny_image_processor())


def test_a_model_of_text_refuses_images_that_nobody_announced(settings, tokenizer):
    run = Watch(tiny_model(tokenizer), settings(**{**CHANGES, "env": glance.UNANNOUNCED}), tokenizer)
    with pytest.raises(TemplateError, match="this model reads text only"):
        run.train()
