"""A single turn: sums, with a system prompt and a parser."""

import verifiers as vf
from datasets import Dataset


def load_environment(count: int = 6) -> vf.Environment:
    rows = [{"question": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(count)]
    parser = vf.XMLParser(fields=["answer"], answer_field="answer")

    async def correct(parser: vf.Parser, completion: vf.Messages, answer: str) -> float:
        return float(parser.parse_answer(completion) == answer)

    rubric = vf.Rubric(funcs=[correct, parser.get_format_reward_func()], weights=[1.0, 0.5], parser=parser)
    return vf.SingleTurnEnv(
        dataset=Dataset.from_list(rows),
        eval_dataset=Dataset.from_list(rows[:2]),
        system_prompt="Write <answer>...</answer>.",
        parser=parser,
        rubric=rubric,
    )
