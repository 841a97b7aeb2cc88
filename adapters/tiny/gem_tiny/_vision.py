"""A randomly initialized vision-language model, small enough for one CPU core."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import pad
from transformers import PreTrainedTokenizerFast, Qwen2VLConfig, Qwen2VLForConditionalGeneration

from gem_core.env import Env
from gem_core.episode import as_token_ids
from gem_train.rollout import ChatTemplate, Conversation, ImageReader, Patches, images_in

if TYPE_CHECKING:
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

_PATCH, _MERGE = 14, 2
_IGNORED = -100  # label that the loss of transformers ignores


def tiny_image_processor(side: int = 56) -> Qwen2VLImageProcessorPil:
    """Qwen2-VL's image processor, which scales each image to about `side` x `side` pixels: 4 tokens at 56."""
    # Imported here, because the transformers of Oat and ROLL lack it. The other image processor needs torchvision.
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    size = {"shortest_edge": side * side, "longest_edge": side * side}
    return Qwen2VLImageProcessorPil(patch_size=_PATCH, merge_size=_MERGE, temporal_patch_size=1, size=size)


def tiny_vision_model(
    tokenizer: PreTrainedTokenizerFast, *, hidden: int = 96, layers: int = 2, context: int = 1024, seed: int = 0
) -> Qwen2VLForConditionalGeneration:
    """A Qwen2-VL with random weights.

    Args:
        tokenizer: from `tiny_tokenizer(images=True)`.
        hidden: width, a multiple of 32.
        layers: number of layers, of the language model and of the vision tower.
        context: longest sequence.
        seed: seed of the weights.
    """
    torch.manual_seed(seed)
    ids: Any = tokenizer.convert_tokens_to_ids
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": _sections(hidden // 8)}
    config = Qwen2VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": hidden,
            "intermediate_size": 2 * hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": context,
            "rope_parameters": rope,
            "tie_word_embeddings": True,
            "pad_token_id": tokenizer.pad_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "bos_token_id": None,
        },
        vision_config={
            "depth": layers,
            "embed_dim": 64,
            "hidden_size": hidden,
            "num_heads": 4,
            "mlp_ratio": 2,
            "patch_size": _PATCH,
            "spatial_merge_size": _MERGE,
            "temporal_patch_size": 1,
            "in_channels": 3,
        },
        image_token_id=ids("<|image_pad|>"),
        video_token_id=ids("<|video_pad|>"),
        vision_start_token_id=ids("<|vision_start|>"),
        vision_end_token_id=ids("<|vision_end|>"),
        tie_word_embeddings=True,
    )
    whole: Any = config
    # As for `tiny_model`: with the usual 0.02 a model of this size learns nothing from images.
    for one in (whole, whole.text_config, whole.vision_config):
        one.initializer_range = 0.1
    return Qwen2VLForConditionalGeneration(config)


def vision_start(
    model: Qwen2VLForConditionalGeneration,
    tokenizer: PreTrainedTokenizerFast,
    reader: ImageReader,
    env: Env,
    answer: Callable[[Env], str],
    *,
    steps: int,
    batch: int = 64,
    learning_rate: float = 1e-3,
    seed: int = 0,
) -> list[float]:
    """A short supervised start on first turns. A policy that is right by chance alone learns nothing from rewards.

    Args:
        model: changed in place.
        tokenizer: of the model.
        reader: reads images for the model.
        env: what to play.
        answer: the action to learn, right after a reset.
        steps: number of optimizer steps.
        batch: examples per step.
        learning_rate: of AdamW.
        seed: example `k` of the run has the seed `seed * 1,000,003 + k`.

    Returns:
        The loss of each step.
    """
    template = ChatTemplate(tokenizer, images=reader)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    losses: list[float] = []
    model.train()
    for step in range(steps):
        first = seed * 1_000_003 + step * batch
        examples = [_example(env, answer, template, tokenizer, first + number) for number in range(batch)]
        loss = _loss(model, reader, examples, tokenizer.pad_token_id)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def _sections(half: int) -> list[int]:
    """The half of a head's width, shared by the three axes of a position."""
    third = half // 3
    return [half - 2 * third, third, third]


def _example(
    env: Env, answer: Callable[[Env], str], template: ChatTemplate, tokenizer: PreTrainedTokenizerFast, seed: int
) -> tuple[list[int], int, list[Patches]]:
    """Token ids of a prompt with its answer, the length of the prompt, and its images."""
    conversation = Conversation(template)
    conversation.observe(*env.reset(seed=seed))
    prompt = conversation.prompt()
    said: list[Any] = tokenizer.encode(answer(env), add_special_tokens=False)
    end: Any = tokenizer.eos_token_id
    ids = [*prompt.tolist(), *as_token_ids([*said, end])]
    reader = template.images
    assert reader is not None
    return ids, len(prompt), [reader.read(uri) for uri in images_in(prompt)]


def _loss(
    model: Qwen2VLForConditionalGeneration,
    reader: ImageReader,
    examples: list[tuple[list[int], int, list[Patches]]],
    pad_id: Any,
) -> torch.Tensor:
    width = max(len(ids) for ids, _, _ in examples)
    ids = torch.stack([pad(torch.tensor(one), (0, width - len(one)), value=pad_id) for one, _, _ in examples])
    positions = torch.arange(width)
    lengths = torch.tensor([[len(one)] for one, _, _ in examples])
    prompts = torch.tensor([[prompt] for _, prompt, _ in examples])
    present = positions < lengths
    patches = [one for _, _, seen in examples for one in seen]
    return model(
        input_ids=ids,
        attention_mask=present.long(),
        labels=ids.masked_fill(~present | (positions < prompts), _IGNORED),
        pixel_values=torch.cat([torch.from_numpy(one.pixels) for one in patches]),
        image_grid_thw=torch.tensor([one.grid for one in patches]),
        mm_token_type_ids=(ids == reader.placeholder).int(),
    ).loss
