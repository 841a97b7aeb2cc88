"""Keys and values that are kept between turns: the same samples, less computed."""

from __future__ import annotations

import itertools

import pytest
import torch
from peft import LoraConfig, get_peft_model
from spy import SpyTrainer
from transformers import (
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from trl.trainer.utils import add_fused_lm_head, pad

from gem_trl import _scoring
from gem_trl._prefixes import KeptPrefixes
from gem_trl._scoring import _Rows, can_score, log_probs

SMALL = {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256}
END, PAD = 1, 0


def _qwen():
    return Qwen3ForCausalLM(Qwen3Config(**SMALL, **HEADS, head_dim=8))


def _lora():
    model = get_peft_model(_qwen(), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    for name, weight in model.named_parameters():
        if "lora" in name:
            torch.nn.init.normal_(weight)
    return model


MODELS = {
    "qwen3": _qwen,
    "lora": _lora,
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SMALL, **HEADS)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=32, n_layer=2, n_head=4, n_positions=256)),
    "sliding": lambda: MistralForCausalLM(MistralConfig(**SMALL, **HEADS, sliding_window=6)),
}


@pytest.mark.parametrize("name", MODELS)
def test_samples_are_those_of_whole_prompts(name):
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    widths: list[int] = []
    inner = model.get_base_model() if name == "lora" else model
    inner.get_input_embeddings().register_forward_hook(lambda _, ids, __: widths.append(ids[0].shape[1]))
    plain = _play(model, None)
    computed, kept = sum(widths), KeptPrefixes()
    widths.clear()
    assert _play(model, kept) == plain
    assert "generate" not in vars(model)
    if name == "sliding":
        assert sum(widths) == computed
    else:
        assert sum(widths) < computed / 2


def test_an_unknown_prompt_and_changed_weights():
    torch.manual_seed(0)
    model, kept = _qwen().eval(), KeptPrefixes()
    prompts = [[3, 4, 5, 6, 7], [8, 9]]
    answers = _sample(model, prompts, kept, 0)
    longer = [[*prompt, *answer, 10, 11] for prompt, answer in zip(prompts, answers, strict=True)]
    # A row that is not known, rows in another order and fewer of them, and a row that forgets its beginning.
    for others in ([[12, 13, 14], longer[1]], longer[::-1], [longer[0]], [longer[0][1:], longer[1]]):
        _sample(model, prompts, kept, 0)
        assert _sample(model, others, kept, 5) == _sample(model, others, None, 5)
    _sample(model, prompts, kept, 0)
    kept.clear()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    assert _sample(model, longer, kept, 5) == _sample(model, longer, None, 5)


@pytest.mark.parametrize("name", MODELS)
def test_what_first_prompts_begin_with_is_computed_once(name):
    torch.manual_seed(0)
    model, ids = MODELS[name]().eval(), []
    inner = model.get_base_model() if name == "lora" else model
    inner.get_input_embeddings().register_forward_hook(lambda _, given, __: ids.append(given[0].shape))
    beginning = [*range(3, 19)]
    for prompts in ([[*beginning, 20, 21], [*beginning, 22], [*beginning, 23]], [beginning] * 3):
        ids.clear()
        plain = _sample(model, prompts, None, 0)
        count = len(prompts[0]) * 3
        assert ids[0].numel() == count
        ids.clear()
        assert _sample(model, prompts, KeptPrefixes(), 0) == plain
        first = [shape.numel() for shape in ids[:2]]
        assert first[0] == count if name == "sliding" else sum(first) <= 15 + 3 * 3
    for other in ([4, *beginning], [3, 5, *beginning]):
        ids.clear()
        assert _sample(model, [other, beginning], KeptPrefixes(), 0)
        assert ids[0][0] == 2, "prompts that begin differently, or soon differ, are computed at once"


@pytest.mark.parametrize("where", ["adapters", "attention"])
def test_with_dropout_samples_stay_those_of_whole_prompts(where):
    torch.manual_seed(0)
    if where == "adapters":
        adapters = LoraConfig(r=4, lora_dropout=0.5, target_modules=["q_proj"], init_lora_weights=False)
        model = get_peft_model(_qwen(), adapters).train()
    else:
        model = Qwen3ForCausalLM(Qwen3Config(**SMALL, **HEADS, head_dim=8, attention_dropout=0.5)).train()
    prompts = [[*range(3, 19), last] for last in (20, 21, 22)]
    assert _sample(model, prompts, KeptPrefixes(), 0) == _sample(model, prompts, None, 0)


@pytest.mark.parametrize(("row", "history"), [("episode", None), ("turn", 1)])
def test_a_run_is_the_same_with_and_without(trainer, row, history):
    sampled, weights = [], []
    for keep in (True, False):
        run = trainer(cls=SpyTrainer, keep_prefixes=keep, row=row, history=history, max_steps=2, learning_rate=1e-3)
        run.train()
        assert run._scores_once == keep
        assert run._prefixes._kept is None  # nothing is kept after a batch
        sampled.append(run.sampled)
        weights.append(torch.cat([weight.detach().flatten() for weight in run.model.parameters()]))
    assert sampled[0] == sampled[1]
    # Adam's steps of 1e-3 make much of the rounding of small gradients.
    torch.testing.assert_close(weights[0], weights[1], atol=1e-4, rtol=0)


def _play(model, kept: KeptPrefixes | None) -> list[list[list[int]]]:
    """Five turns of four rows, which end at different lengths and of which one is done after three turns."""
    prompts = [[3, 4, 5, 6, 7, 8, 9, 10], [11, 12], [13, 14, 15, 16], [11, 12]]
    said = []
    for turn in range(5):
        answers = _sample(model, prompts, kept, turn)
        said.append(answers)
        prompts = [
            [*p, *a, 17 + turn, *[30] * place] for place, (p, a) in enumerate(zip(prompts, answers, strict=True))
        ]
        if turn == 2:
            prompts.pop(1)
    return said


def _sample(model, prompts: list[list[int]], kept: KeptPrefixes | None, seed: int) -> list[list[int]]:
    width = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    config = GenerationConfig(
        max_new_tokens=5, do_sample=True, top_k=0, eos_token_id=[END, 2], pad_token_id=PAD, disable_compile=True
    )
    torch.manual_seed(seed)
    with torch.no_grad():
        if kept is None:
            output = model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
        else:
            with kept.used_by(model):
                output = model.generate(input_ids=ids, attention_mask=mask, generation_config=config)
    return [_until_end(row) for row in output[:, width:].tolist()]


def _until_end(ids: list[int]) -> list[int]:
    ends = [place for place, one in enumerate(ids) if one in (END, 2)]
    return ids[: ends[0] + 1] if ends else ids


# -- in the loss ------------------------------------------------------------------------------------------------------


def _rows(beginnings: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Rows as TRL pads them: prompts that begin like `beginnings`, completions of 1 to 6 ids."""
    ids = iter(torch.randint(3, 40, (200,), generator=torch.Generator().manual_seed(0)).tolist())
    prompts = [[*one, *itertools.islice(ids, 1 + place)] for place, one in enumerate(beginnings)]
    said = [[*itertools.islice(ids, 1 + 2 * place % 6)] for place in range(len(beginnings))]
    parts = [([*map(torch.tensor, prompts)], "left"), ([*map(torch.tensor, said)], "right")]
    rows = [pad(part, PAD, side) for part, side in parts]
    whole = [pad([torch.ones_like(row) for row in part], 0, side) for part, side in parts]
    return torch.cat(rows, 1), torch.cat(whole, 1), rows[1].shape[1]


@pytest.mark.parametrize("name", ["qwen3", "lora", "llama", "gpt2"])
@pytest.mark.parametrize("alike", [0, 12])
def test_the_loss_and_its_gradient_are_those_of_whole_rows(monkeypatch, name: str, alike: int):
    torch.manual_seed(0)
    model = MODELS[name]()
    inner = model.get_base_model() if name == "lora" else model
    add_fused_lm_head(inner, temperature=0.7, outputs=("log_probs", "entropy"))
    model.eval()
    widths: list[torch.Size] = []
    inner.get_input_embeddings().register_forward_hook(lambda _, ids, __: widths.append(ids[0].shape))
    common = [*range(5, 5 + alike)]
    monkeypatch.setattr(_scoring, "_CPU_ROWS", 2)
    ids, mask, kept = _rows([common] * 5)
    weights = torch.rand(5, kept, generator=torch.Generator().manual_seed(1))
    labels = ids.masked_fill(mask == 0, -100)
    labels[:, :-kept] = -100
    # Without positions, the padding to the left would move a model whose positions are learned.
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    whole = model(input_ids=ids, attention_mask=mask, position_ids=positions, labels=labels, fused_lm_head=True)
    (whole.log_probs[:, -kept:] * weights).sum().backward()
    expected = {key: one.grad.clone() for key, one in model.named_parameters() if one.grad is not None}
    model.zero_grad()
    computed = sum(shape.numel() for shape in widths)
    widths.clear()
    scored, entropies = log_probs(model, ids, mask, kept)
    (scored * weights).sum().backward()
    assert can_score(model)
    assert torch.allclose(scored, whole.log_probs[:, -kept:], atol=1e-5)
    assert torch.allclose(entropies, whole.entropy[:, -kept:], atol=1e-5)
    assert {key for key, one in model.named_parameters() if one.grad is not None and one.grad.any()} == {
        key for key, grad in expected.items() if grad.any()
    }
    assert all(
        torch.allclose(one.grad, expected[key], atol=1e-5) for key, one in model.named_parameters() if key in expected
    )
    assert sum(shape.numel() for shape in widths) < (computed / 2 if alike else computed)


def test_rows_that_do_not_begin_alike_or_have_padding_inside():
    ids, mask, kept = _rows([[3, 4, 5, 6], [3, 4, 7, 8], [9, 4, 5, 6]])
    assert _Rows.of(ids[:2], mask[:2], kept).shared() == 0  # two ids are less than a quarter
    assert _Rows.of(ids, mask, kept).shared() == 0
    mask[0, -kept - 2] = 0
    assert log_probs(None, ids, mask, kept) is None
