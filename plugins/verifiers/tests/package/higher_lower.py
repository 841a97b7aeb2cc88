"""Several turns: a number from 1 to 9 to be found in four."""

import verifiers as vf
from datasets import Dataset

cleaned: list[str] = []
"""The answers of the episodes that ended or were given up."""


class HigherLower(vf.MultiTurnEnv):
    async def setup_state(self, state: vf.State) -> vf.State:
        state["guesses"] = []
        return state

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs: object) -> vf.Messages:
        guess, secret = str(messages[-1].content), int(state["answer"])
        state["guesses"].append(guess)
        if guess == str(secret):
            state["final_env_response"] = [vf.UserMessage(content="Found.")]
            return state["final_env_response"]
        if guess == "broken":
            raise vf.InfraError("the number is lost")
        if guess == "buggy":
            raise KeyError(guess)
        return [vf.UserMessage(content="Higher." if guess < str(secret) else "Lower.")]

    @vf.cleanup
    async def note(self, state: vf.State) -> None:
        cleaned.append(state["answer"])


async def found(state: vf.State) -> float:
    return float(state["answer"] in state["guesses"])


async def guesses(state: vf.State) -> float:
    return len(state["guesses"])


def load_environment(max_turns: int = 4, few_shot: bool = False) -> vf.Environment:
    rows = [{"question": "Find my number from 1 to 9.", "answer": str(n)} for n in range(1, 10)]
    shots = [vf.UserMessage(content="Find it."), vf.AssistantMessage(content="5")] if few_shot else None
    rubric = vf.Rubric(funcs=[found])
    rubric.add_metric(guesses)
    return HigherLower(dataset=Dataset.from_list(rows), max_turns=max_turns, few_shot=shots, rubric=rubric)
