"""What cannot be played here."""

import verifiers as vf
from datasets import Dataset
from verifiers.envs.experimental.sandbox_mixin import SandboxMixin


class Boxed(SandboxMixin, vf.SingleTurnEnv):
    """Would run in a sandbox."""

    active_sandboxes = ()

    def teardown_sandbox_client(self) -> None:
        """There is none."""


class Thing:
    """No environment."""

    env_id = ""
    env_args = None


async def alone(answer: str) -> float:
    return 1.0


async def together(completions: list[vf.Messages]) -> list[float]:
    return [1.0] * len(completions)


def load_environment(kind: str) -> object:
    rows = Dataset.from_list([{"question": "?", "answer": "!"}])
    match kind:
        case "sandbox":
            return Boxed(dataset=rows, rubric=vf.Rubric(funcs=[alone]))
        case "group":
            return vf.SingleTurnEnv(dataset=rows, rubric=vf.Rubric(funcs=[together]))
        case "eval only":
            return vf.SingleTurnEnv(eval_dataset=rows, rubric=vf.Rubric(funcs=[alone]))
        case "image":
            parts = [{"type": "image_url", "image_url": {"url": "data:,"}}]
            images = Dataset.from_list([{"prompt": [{"role": "user", "content": parts}], "answer": ""}])
            return vf.SingleTurnEnv(dataset=images, rubric=vf.Rubric(funcs=[alone]))
        case "nan":
            return vf.SingleTurnEnv(dataset=rows, rubric=vf.Rubric(funcs=[alone], weights=[float("nan")]))
        case "text":
            return Thing()
        case _:
            raise ValueError(f"no kind {kind!r}")
