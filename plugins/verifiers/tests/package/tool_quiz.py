"""A tool to call."""

import verifiers as vf
from datasets import Dataset


def double(number: int) -> int:
    """Twice the number.

    Args:
        number: to double.
    """
    return 2 * number


async def correct(completion: vf.Messages, answer: str) -> float:
    return float(str(completion[-1].content) == answer)


def load_environment() -> vf.Environment:
    rows = [{"question": "What is twice 21?", "answer": "42"}]
    return vf.ToolEnv(dataset=Dataset.from_list(rows), tools=[double], max_turns=3, rubric=vf.Rubric(funcs=[correct]))
