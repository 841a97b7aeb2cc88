"""Images in verl: what the server sees is what the actor trains on, through verl's own agent worker and model inputs.

In one process: the server of the CPU, the agent loop, verl's postprocessing and the model as verl's actor calls it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from omegaconf import DictConfig
from PIL import Image
from tensordict import NonTensorStack, TensorDict
from test_loop import play_rows, trained_turns
from transformers import AutoModelForImageTextToText
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl
from transformers.models.qwen2_vl import modeling_qwen2_vl
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput
from verl.models.transformers import monkey_patch
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import HFModelConfig
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.rollout.replica import TokenOutput
from without_ray import MemoryQueue, hand_over, trainer

from gem_core.episode import as_token_ids
from gem_core.errors import SettingsError
from gem_core.image import PngImage
from gem_cpu.verl.replica import Server
from gem_support import glance
from gem_train.rollout import ImagePrompt
from gem_verl._images import reader_of
from gem_verl._policy import ServerPolicy
from gem_verl._positions import make_position_ids_ragged
from gem_verl._tasks import EnvTasks


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    glance.register()


@pytest.fixture(scope="module")
def vision_folder(_registered: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return glance.saved_model(tmp_path_factory.mktemp("vision"))


@pytest.fixture
def config(configure: Callable[..., DictConfig], vision_folder: Path) -> DictConfig:
    return configure(f"gem.env={glance.ENV}", f"actor_rollout_ref.model.path={vision_folder}")


@pytest.fixture
def model(config: DictConfig) -> HFModelConfig:
    """What verl loads in each of its processes."""
    return omega_conf_to_dataclass(config.actor_rollout_ref.model, dataclass_type=HFModelConfig)


class Client:
    """verl's client of one server, in this process."""

    def __init__(self, server: Server) -> None:
        self.calls: list[dict[str, Any]] = []
        self._server = server

    async def generate(self, **request: Any) -> TokenOutput:
        output = await self._server.generate(**request)
        self.calls.append({**request, "ids": output.token_ids, "logprobs": output.log_probs})
        return output


def network(folder: Path) -> Any:
    return AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()


def played(config: DictConfig, model: HFModelConfig, folder: Path, count: int = 8) -> tuple[Any, list[Any]]:
    """The client, and the rows of each episode."""
    server = Server(omega_conf_to_dataclass(config.actor_rollout_ref.rollout), config.actor_rollout_ref.model)
    server._load(network(folder).state_dict(), 0)
    client, rows = Client(server), EnvTasks("train", config.data)
    tasks = [rows[task] for task in range(count)]
    return client, play_rows(config, model.tokenizer, client, tasks, processor=model.processor)


def stored(model: HFModelConfig, episodes: Sequence[Sequence[AgentLoopOutput]], queue: MemoryQueue) -> list[Any]:
    """The rows as verl's agent worker stores them."""
    keys = [
        key
        for number, rows in enumerate(episodes)
        for key in hand_over(queue, rows, f"task{number}", 0, processor=model.processor, tokenizer=model.tokenizer)
    ]
    return [queue.rows[key] for key in keys]


def actor_logits(net: Any, rows: Sequence[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> torch.Tensor:
    """(rows, ids, vocabulary) of verl's actor: its inputs, in its form of the model."""
    columns = {name: [row[name] for row in rows] for name in ("input_ids", "position_ids", "multi_modal_inputs")}
    batch = TensorDict(
        {
            "input_ids": tu.nested_tensor_from_tensor_list(columns["input_ids"]),
            "position_ids": tu.nested_tensor_from_tensor_list(columns["position_ids"], ragged_idx=2),
            "multi_modal_inputs": NonTensorStack(*columns["multi_modal_inputs"]),
        },
        batch_size=[len(rows)],
    )
    tu.assign_non_tensor(batch, temperature=1.0, use_remove_padding=False)
    engine: Any = SimpleNamespace(pad_to_length=None, use_ulysses_sp=False)
    inputs, _ = FSDPEngineWithLMHead.prepare_model_inputs(engine, batch)
    for module in (modeling_qwen2_vl, modeling_qwen2_5_vl):  # verl changes the classes for the whole process
        for name, cls in vars(module).items():
            if name.endswith(("VLModel", "ForConditionalGeneration")):
                monkeypatch.setattr(cls, "forward", cls.forward)
    monkeypatch.setattr(monkey_patch, "is_trl_available", lambda: False)  # it takes our folder of tests for TRL
    monkey_patch.apply_monkey_patch(net, use_remove_padding=False)
    with torch.no_grad():
        return net(**inputs).logits


@pytest.mark.parametrize(("kind", "history"), [("episode", None), ("turn", 1)])
def test_the_actor_sees_what_the_server_saw(config, model, vision_folder, monkeypatch, kind, history):
    config.gem.row, config.gem.history = kind, history
    client, episodes = played(config, model, vision_folder)
    reader = reader_of(model.processor)
    assert reader is not None
    said = sorted(([*call["prompt_ids"]], call["ids"]) for call in client.calls)
    outputs = [row for rows in episodes for row in rows]
    assert sorted(turn for row in outputs for turn in trained_turns(row)) == said
    assert {len(call.get("image_data", [])) for call in client.calls} >= {0, 1, 2}
    assert not any(reader.reserved & {*call["ids"]} for call in client.calls)
    rows = stored(model, episodes, MemoryQueue().install(monkeypatch))
    assert len(rows) == len(outputs)
    logits = actor_logits(network(vision_folder), rows, monkeypatch)
    logits[..., sorted(reader.reserved)] = -torch.inf
    compared = 0
    for row, scores in zip(rows, logits.log_softmax(-1), strict=True):
        ids, first = row["input_ids"], len(row["prompts"])
        assert (ids == reader.placeholder).sum() * 4 == len(row["multi_modal_inputs"].get("pixel_values", []))
        own = scores[: len(ids) - 1].gather(-1, ids[1:, None])[first - 1 :, 0]
        mask = row["response_mask"].bool()
        torch.testing.assert_close(own[mask], row["rollout_log_probs"][mask], atol=1e-5, rtol=1e-4)
        compared += int(mask.sum())
    assert compared == sum(len(call["ids"]) for call in client.calls)


def test_log_probabilities_tell_images_apart(config, model, vision_folder, monkeypatch):
    """Otherwise the test above would prove nothing."""
    _, episodes = played(config, model, vision_folder)
    rows = stored(model, episodes, MemoryQueue().install(monkeypatch))
    shown = [row for row in rows if "pixel_values" in row["multi_modal_inputs"]]
    net = network(vision_folder)
    right = actor_logits(net, shown, monkeypatch)
    for row in shown:
        row["multi_modal_inputs"]["pixel_values"] = row["multi_modal_inputs"]["pixel_values"].flip(0)
    assert (actor_logits(net, shown, monkeypatch) - right).abs().max() > 1e-2


def test_patches_are_those_of_the_ids(config, model, vision_folder, monkeypatch):
    _, episodes = played(config, model, vision_folder)
    reader = reader_of(model.processor)
    rows = stored(model, episodes, MemoryQueue().install(monkeypatch))
    outputs = [row for one in episodes for row in one]
    for output, row in zip(outputs, rows, strict=True):
        images = output.multi_modal_data["images"] if output.multi_modal_data else []
        seen = [reader.read(PngImage.of(image).uri) for image in images]
        if seen:
            pixels = torch.cat([torch.from_numpy(one.pixels) for one in seen])
            assert torch.equal(row["multi_modal_inputs"]["pixel_values"], pixels)
            assert row["multi_modal_inputs"]["image_grid_thw"].tolist() == [[*one.grid] for one in seen]
        else:
            assert row["multi_modal_inputs"] == {}
        assert not {"multi_modal_data", "mm_processor_kwargs"} & {*row}, "verl would store the images once more"


def test_a_text_with_the_name_of_a_placeholder_costs_no_episode(config, model, vision_folder, monkeypatch):
    """verl gives the decoded text of a row to its processor, which would look for one more image."""
    monkeypatch.setattr(glance.Glance, "_drawn", lambda self: [self._image()])
    monkeypatch.setattr(glance.Glance, "text", "look at <|image_pad|> it")
    _, episodes = played(config, model, vision_folder, count=2)
    rows = stored(model, episodes, MemoryQueue().install(monkeypatch))
    assert [len(row["multi_modal_inputs"]["image_grid_thw"]) for row in rows] == [2, 2]


def test_models_that_read_no_images_are_refused_before_workers_start(configure, model_folder):
    made = trainer(configure(f"gem.env={glance.ENV}"), None)
    with pytest.raises(SettingsError, match=f"shows images, and verl found no image processor for {model_folder}"):
        made._init_tokenizer()


@pytest.mark.parametrize("lengths", [[5, 5, 5], [5, 6, 7], [4, 4], [4], [7], [2, 2]])
@pytest.mark.parametrize("pickled", [False, True])
def test_positions_of_rows_of_one_length_stay_positions(lengths, pickled):
    rows = [100 * number + torch.arange(4 * length).view(4, length) for number, length in enumerate(lengths)]
    joined = torch.nested.as_nested_tensor(rows, layout=torch.jagged)  # as TransferQueue does
    if pickled:  # where tensordict forgets which axis is ragged
        joined = tu.nested_tensor_from_tensor_list(rows, ragged_idx=2)
        joined._ragged_idx = 1
    data = TensorDict({"position_ids": joined}, batch_size=[len(rows)])
    make_position_ids_ragged(data)
    for found, row in zip(data["position_ids"].unbind(), rows, strict=True):
        assert torch.equal(found, row)


def test_verl_takes_rows_of_one_length_for_others():
    """Otherwise the adapter needs no function of its own."""
    rows = [torch.arange(40).view(4, 10)] * 3
    data = TensorDict({"position_ids": torch.nested.as_nested_tensor(rows, layout=torch.jagged)}, batch_size=[3])
    tu.maybe_fix_3d_position_ids(data)
    with pytest.raises(RuntimeError):
        data["position_ids"].unbind()


def test_a_response_that_is_continued_has_its_images_still():
    calls: list[dict[str, Any]] = []

    class Interrupted:
        async def generate(self, **request: Any) -> TokenOutput:
            calls.append(request)
            reason = "aborted" if len(calls) == 1 else "completed"
            return TokenOutput(token_ids=[7], log_probs=[-1.0], stop_reason=reason, extra_fields={"global_steps": 0})

    client: Any = Interrupted()
    policy = ServerPolicy(client, {}, max_tokens=4, ends=(), episode="one", updates=1, seed=None, never=(3, 2))
    uri = PngImage.of(Image.new("RGB", (4, 2))).uri
    asyncio.run(policy(ImagePrompt(as_token_ids([5, 6]), [uri])))
    assert [one["prompt_ids"] for one in calls] == [[5, 6], [5, 6, 7]]
    assert [[image.size for image in one["image_data"]] for one in calls] == [[(4, 2)]] * 2
    assert [one["sampling_params"]["logit_bias"] for one in calls] == [{2: -100.0, 3: -100.0}] * 2


class Whole:
    """A processor whose image processor gives no patches."""

    config = SimpleNamespace(image_token_id=3)
    image_processor = SimpleNamespace(patch_size=14)


def test_a_processor_of_another_kind_makes_no_reader():
    assert reader_of(Whole()) is None
    assert reader_of(None) is None
