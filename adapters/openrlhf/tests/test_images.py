"""Images in OpenRLHF: what its engines are shown is what its own actor trains on."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from openrlhf.models.actor import Actor
from openrlhf.trainer.ppo_utils.experience import make_experience_batch, split_experience_batch
from openrlhf.utils.utils import get_tokenizer
from openrlhf.utils.vlm_utils import dedup_media_tokens, merge_mm_train_inputs
from test_agent import Engine, play_labels, trained, written
from transformers import AutoModelForImageTextToText, ViTImageProcessor

from gem_core.errors import EnvError, SettingsError
from gem_core.image import PngImage
from gem_openrlhf._checks import check
from gem_openrlhf._experience import row_experience
from gem_openrlhf._images import ImageIds
from gem_openrlhf._rows import EpisodeRows
from gem_openrlhf._tasks import TaskLabel
from gem_openrlhf.settings import parse
from gem_support import glance
from gem_train.images import ImageLimit
from gem_train.rollout import ImageReader, StopReason


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    glance.register()


@pytest.fixture(scope="module")
def vision_folder(_registered: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return glance.saved_model(tmp_path_factory.mktemp("vision"))


class Looking(Engine):
    """Keeps the images, and says nothing that it must not."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        self.shown: list[list[Any]] = []

    async def generate(self, prompt: list[int], sampling: Any, multi_modal_data: Any = None) -> Any:
        never = sampling.logit_bias
        assert {*never.values()} == {-100.0}
        self.shown.append([] if multi_modal_data is None else multi_modal_data["image"])
        rng = random.Random(repr(prompt))
        ids = [one for one in rng.choices(range(7, len(self._tokenizer)), k=6) if one not in never]
        ids = [*ids[:3], self._tokenizer.eos_token_id]
        self.calls.append((list(prompt), ids, sampling))
        choices = [{one: SimpleNamespace(logprob=-rng.random())} for one in ids]
        return SimpleNamespace(
            outputs=[SimpleNamespace(token_ids=ids, text="", logprobs=choices, finish_reason="stop")]
        )


class Album(glance.Glance):
    """Shows as many images as it is told to, until it is told to end."""

    count = 1
    over = False

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "", 0.0, self.over, False, {"images": self._drawn()}

    def _drawn(self) -> list[Any]:
        return [self._image() for _ in range(self.count)]


class Played:
    """Episodes that an engine played, with OpenRLHF's own processor."""

    def __init__(self, model: Path, folder: Path, *flags: str, most: int = 4) -> None:
        self.ids = ImageIds.of(str(model), most)
        assert self.ids is not None
        self.processor = get_tokenizer(str(model), None)
        settings, _ = parse(["--gem.env", glance.ENV, "--gem.steps", "1", *flags])
        labels = written(folder, settings, "train", 8, 8, self.ids)
        assert TaskLabel.decode(labels[0]).images == self.ids
        self.engine = Looking(self.processor.tokenizer)
        self.results: list[EpisodeRows] = play_labels(labels, self.processor, self.engine)
        self.rows = [row for one in self.results for row in one.rows]

    @property
    def reader(self) -> ImageReader:
        assert self.ids is not None
        reader = self.ids.reader(self.processor)
        assert reader is not None
        return reader


def logprobs(model: Any, reader: ImageReader, row: Any) -> torch.Tensor:
    """(ids - 1,) log-probabilities of the ids of a row after the first, without padding and by hand."""
    ids: Any = torch.tensor([row.ids.tolist()])
    seen = [reader.read(one.uri) for one in row.images]
    fields: dict[str, Any] = {}
    if seen:
        fields = {
            "pixel_values": torch.cat([torch.from_numpy(one.pixels) for one in seen]),
            "image_grid_thw": torch.tensor([one.grid for one in seen]),
            "mm_token_type_ids": (ids == reader.placeholder).int(),
        }
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), **fields).logits
    return logits[0, :-1].log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0]


@pytest.mark.parametrize("flags", [[], ["--gem.row", "turn", "--gem.history", "1"]])
def test_the_actor_sees_what_the_engine_was_shown(vision_folder, tmp_path, flags):
    run = Played(vision_folder, tmp_path, *flags)
    reader = run.reader
    assert sorted(trained(run.results)) == sorted((prompt, ids) for prompt, ids, _ in run.engine.calls)
    assert {len(images) for images in run.engine.shown} >= {0, 1, 2}
    for (prompt, _, _), images in zip(run.engine.calls, run.engine.shown, strict=True):
        seen = [reader.read(PngImage.of(image).uri) for image in images]
        assert prompt.count(reader.placeholder) == sum(reader.tokens(one.grid) for one in seen)
        # OpenRLHF's engine gives vLLM one placeholder per image.
        assert dedup_media_tokens(prompt, {reader.placeholder}).count(reader.placeholder) == len(images)
    # As OpenRLHF's trainer and workers: samples, apart and together again.
    samples = [row_experience(row, reader) for row in run.rows]
    batch = make_experience_batch([part for one in samples for part in split_experience_batch(one)])
    inputs = merge_mm_train_inputs(batch.mm_train_inputs, "cpu")
    actor = Actor(str(vision_folder), attn_implementation="eager", param_dtype="fp32").eval()
    assert actor.is_vlm
    with torch.no_grad():
        found = actor(batch.sequences, batch.action_mask, batch.attention_mask, **inputs)
    twin = AutoModelForImageTextToText.from_pretrained(vision_folder, dtype=torch.float32).eval()
    for row, own in zip(run.rows, found, strict=True):
        mask = torch.tensor(row.mask[1:]).bool()
        wanted = logprobs(twin, reader, row)
        assert mask.sum() == sum(turn.end - turn.start for turn in row.turns)
        torch.testing.assert_close(own[: len(mask)][mask], wanted[mask], atol=1e-5, rtol=1e-4)


def test_patches_reach_the_loss_in_the_order_of_their_rows(vision_folder, tmp_path):
    run = Played(vision_folder, tmp_path)
    samples = [row_experience(row, run.reader) for row in run.rows]
    for row, sample in zip(run.rows, samples, strict=True):
        [inputs] = sample.mm_train_inputs
        assert (inputs is None) == (not row.images)
        if inputs is not None:
            assert inputs["image_grid_thw"].tolist() == [[*one.grid] for one in row.images]
            assert len(inputs["pixel_values"]) == 4 * sum(one.end - one.start for one in row.images)
    assert row_experience(run.rows[0]).mm_train_inputs == [None]


def test_what_images_need(arguments, vision_folder, model_folder):
    shown = ["--gem.env", glance.ENV, "--gem.steps", "1"]

    def refused(model: Path, says: str, own: list[str], *flags: str) -> None:
        settings, rest = parse([*shown, *own])
        with pytest.raises(SettingsError, match=says):
            check(settings, arguments(*rest, *flags, f"--actor.model_name_or_path={model}"))

    most = "--data.max_images_per_prompt=4"
    refused(vision_folder, f"{glance.ENV} shows images, and --data.max_images_per_prompt is 0", [])
    refused(model_folder, "max_images_per_prompt 4: .* reads text only", [], most)
    refused(vision_folder, "--gem.advantage gae has a critic.* --gem.advantage grpo", ["--gem.advantage", "gae"], most)
    settings, rest = parse(shown)
    assert check(settings, arguments(*rest, most, f"--actor.model_name_or_path={vision_folder}"))


@pytest.mark.parametrize("flags", [[], ["--gem.row", "turn", "--gem.history", "1"]])
def test_more_images_than_vllm_takes_cost_their_episode_only(vision_folder, tmp_path, flags):
    all_shown = Played(vision_folder, tmp_path / "all", *flags)
    limited = Played(vision_folder, tmp_path / "limited", *flags, most=1)
    assert max(len(images) for images in all_shown.engine.shown) > 1
    assert max(len(images) for images in limited.engine.shown) == 1
    failed = [one.summary.stop_reason is StopReason.ENV_ERROR for one in limited.results]
    assert any(failed)
    assert not all(failed)
    assert not any(one.summary.stop_reason is StopReason.ENV_ERROR for one in all_shown.results)


def test_the_limit_names_itself_and_counts_what_a_prompt_shows():
    env = ImageLimit(Album(), most=3, history=2, raised="--most")
    env.reset(seed=0)
    for _ in range(3):  # four observations of one image, two in a prompt
        env.step("")
    env.env.count = 3
    with pytest.raises(EnvError, match="last 2 observations would show 4 images, and --most allows 3"):
        env.step("")
    env.env.count, env.env.over = 9, True
    env.step("")  # nobody is shown what comes after the end
    whole = ImageLimit(Album(), most=3, history=None, raised="--most")
    whole.reset(seed=0)
    whole.step("")
    whole.step("")
    with pytest.raises(EnvError, match="the episode would show 4 images"):
        whole.step("")
    whole.reset(seed=0)


def test_a_model_of_images_on_text_never_says_their_ids(vision_folder, tmp_path):
    run = Played(vision_folder, tmp_path, "--gem.env", "test:Babble-v0", most=0)
    assert run.ids is not None
    assert run.ids.placeholder in run.ids.reserved
    assert run.ids.reader(run.processor) is None
    assert run.engine.calls
    assert all({*sampling.logit_bias} == {*run.ids.reserved} for _, _, sampling in run.engine.calls)


def test_the_launcher_writes_the_ids_of_a_model_of_images_without_the_flag(arguments, vision_folder):
    args = arguments(f"--actor.model_name_or_path={vision_folder}")
    ids = ImageIds.of_run(args)
    assert ids is not None
    assert ids.most == 0
    assert ids.reserved == ImageIds.of(str(vision_folder), 4).reserved


@pytest.mark.parametrize(("damage", "says"), [("missing", ""), ("another", "ViTImageProcessor.* has no merge_size")])
def test_an_unfit_image_processor_is_refused_at_the_start(arguments, vision_folder, tmp_path, damage, says):
    folder = tmp_path / "model"
    shutil.copytree(vision_folder, folder)
    for file in ("preprocessor_config.json", "processor_config.json"):
        (folder / file).unlink(missing_ok=True)
    if damage == "another":
        ViTImageProcessor().save_pretrained(folder)
    settings, rest = parse(["--gem.env", glance.ENV, "--gem.steps", "1"])
    flags = ["--data.max_images_per_prompt=4", f"--actor.model_name_or_path={folder}"]
    with pytest.raises(SettingsError, match=f"prompt 4: the image processor of .* cannot be used: .*{says}"):
        check(settings, arguments(*rest, *flags))
