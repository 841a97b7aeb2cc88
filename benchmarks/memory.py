"""Memory that training a model needs: computed for several sizes, and measured for SmolLM2.

    python benchmarks/memory.py                        # the table of docs/models.md
    python benchmarks/memory.py --measure full         # one forward and backward pass and a step of AdamW, on the CPU
    python benchmarks/memory.py --measure lora         # needs the extras trl and smollm2

The formulas are those of `Shape`. They leave out what depends on a framework: the critic, a reference model, buffers of
communication, and fragments of the GPU's memory.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import dataclass
from typing import Any

GB = 1e9
TRAINED_BYTES = 16
"""Of a trained parameter: weight, gradient and the two averages of AdamW, in float32. With weights in bfloat16 and a
float32 copy in the optimizer, as DeepSpeed has them, it is the same sum: 2 + 2 + 12."""
LOGIT_BYTES = 12
"""Of a token and an entry of the vocabulary: logits, their log-softmax and its gradient, in float32."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a Llama or Qwen3: `heads` of queries and `kv` of keys and values, each `head` wide."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv: int
    head: int
    vocabulary: int
    tied: bool = True
    """Whether the embeddings of the input are those of the output."""
    head_norms: bool = False
    """Whether queries and keys have norms of their own, as in Qwen3."""

    @property
    def parameters(self) -> int:
        """All weights."""
        attention = 2 * self.hidden * self.head * (self.heads + self.kv)
        norms = 2 * self.hidden + (2 * self.head if self.head_norms else 0)
        layer = attention + 3 * self.hidden * self.inner + norms
        return self.layers * layer + self.hidden + self.vocabulary * self.hidden * (1 if self.tied else 2)

    def adapters(self, rank: int) -> int:
        """The weights of LoRA on all linear layers but the output."""
        query, key = self.heads * self.head, self.kv * self.head
        sides = 2 * (self.hidden + query) + 2 * (self.hidden + key) + 3 * (self.hidden + self.inner)
        return self.layers * rank * sides

    def trained(self, rank: int = 0, frozen_bytes: int = 2) -> float:
        """Bytes of weights, gradients and optimizer: of all weights, or with a rank of LoRA's and the frozen ones."""
        if not rank:
            return float(TRAINED_BYTES * self.parameters)
        return float(frozen_bytes * self.parameters + TRAINED_BYTES * self.adapters(rank))

    def pass_(self, tokens: int, number_bytes: int = 2, *, checkpointing: bool = True) -> float:
        """Bytes of a forward and backward pass over a micro-batch, padding included.

        Without checkpointing each layer keeps about ten tables of the hidden size and four of the inner one.
        """
        layer = self.hidden if checkpointing else 10 * self.hidden + 4 * self.inner
        return float(tokens * (self.layers * layer * number_bytes + self.vocabulary * LOGIT_BYTES))

    def sampling(self, tokens: int, number_bytes: int = 2) -> float:
        """Bytes of an engine's weights, and of the keys and values of so many tokens."""
        return float(number_bytes * (self.parameters + tokens * 2 * self.layers * self.kv * self.head))


SHAPES = {
    "SmolLM2-135M": Shape(30, 576, 1536, 9, 3, 64, 49_152),
    "Qwen3-0.6B": Shape(28, 1024, 3072, 16, 8, 128, 151_936, head_norms=True),
    "Qwen3-1.7B": Shape(28, 2048, 6144, 16, 8, 128, 151_936, head_norms=True),
    "Qwen3-4B": Shape(36, 2560, 9728, 32, 8, 128, 151_936, head_norms=True),
    "Qwen3-8B": Shape(36, 4096, 12_288, 32, 8, 128, 151_936, tied=False, head_norms=True),
}
PASS_TOKENS, CACHED_TOKENS, RANK = 4096, 32 * 4096, 16


def table() -> str:
    """The table of docs/models.md, in Markdown."""
    head = ["model", "parameters", "all weights", "LoRA", "a pass", "sampling"]
    rows = [head, ["---"] * len(head)]
    for name, shape in SHAPES.items():
        numbers = [shape.trained(), shape.trained(RANK), shape.pass_(PASS_TOKENS), shape.sampling(CACHED_TOKENS)]
        rows.append([name, f"{shape.parameters / 1e6:,.0f} M", *(f"{number / GB:.1f} GB" for number in numbers)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def measure(kind: str, rows: int = 8, width: int = 128) -> None:
    """Print the largest memory of this process in an update of SmolLM2, and what the formulas say."""
    import torch
    from transformers import AutoModelForCausalLM

    from gem_train.models import model_folder

    torch.set_num_threads(1)
    torch.manual_seed(0)
    before = _largest()
    model: Any = AutoModelForCausalLM.from_pretrained(model_folder("smollm2"), dtype=torch.float32)
    if kind == "lora":
        from peft import LoraConfig, get_peft_model

        model = get_peft_model(model, LoraConfig(r=RANK, target_modules="all-linear", task_type="CAUSAL_LM"))
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad])
    ids = torch.randint(3, 49_000, (rows, width))
    began = time.process_time()
    for _ in range(2):  # the second pass has the optimizer's averages beside it
        scores = model(input_ids=ids).logits.log_softmax(-1)
        scores.gather(-1, ids[:, :, None]).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    spent = time.process_time() - began
    shape = SHAPES["SmolLM2-135M"]
    computed = shape.trained(RANK if kind == "lora" else 0, frozen_bytes=4)
    computed += shape.pass_(rows * width, 4, checkpointing=False)
    print(
        f"{kind}: {rows} rows of {width} tokens in float32: {(_largest() - before) / GB:.2f} GB measured, without the"
    )
    print(f"{before / GB:.2f} GB of the imports; {computed / GB:.2f} GB computed; {spent / 2:.0f} s of CPU an update")


def _largest() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", choices=["full", "lora"])
    chosen = parser.parse_args()
    measure(chosen.measure) if chosen.measure else print(table(), end="")
