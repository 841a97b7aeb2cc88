"""Runs that were never played, written by the real recorder: for tests, screenshots and the benchmark of the viewer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gem_core.episode import Episode, Run, StopReason, TokenSequence, Turn, as_logprobs, as_token_ids
from gem_train.records import RunRecorder, Update
from gem_train.records._frames import FrameReader
from gem_train.records._heads import EpisodeHead, read_head

START, END, NEWLINE = 0, 1, 2
"""Tokens of the chat template."""
_FIRST_WORD = 8


class Vocabulary:
    """Words as tokens; the lower the id, the more often a word is said.

    Args:
        size: number of tokens.
        extra: texts of tokens that follow those.
    """

    def __init__(self, size: int, extra: Sequence[str] = ()) -> None:
        chance = np.random.default_rng(0)
        letters = np.array(list("aaabcdeeeefghiiiklmnoooprsssttuvwy"))
        words = [f" {''.join(chance.choice(letters, chance.integers(1, 8)))}" for _ in range(size - _FIRST_WORD)]
        named = ["<|im_start|>", "<|im_end|>", "\n", "user", "assistant", " the", " number", "."]
        self.texts = [*named, *words, *extra]
        weights = 1 / np.arange(1, size - _FIRST_WORD + 1) ** 1.05
        self._shares = np.cumsum(weights / weights.sum())

    def decode(self, token_ids: Sequence[int], /, **_: Any) -> str:
        """Token ids to text."""
        return "".join([self.texts[one] for one in token_ids])

    def sample(self, chance: np.random.Generator, count: int) -> list[int]:
        """Tokens of words."""
        drawn = np.searchsorted(self._shares, chance.random(count))
        return (np.minimum(drawn, len(self._shares) - 1) + _FIRST_WORD).tolist()


@dataclass(frozen=True)
class Plan:
    """What a made-up run consists of."""

    updates: int = 4
    tasks: int = 4
    """Of each update."""
    repeats: int = 4
    """Episodes of each task."""
    turns: tuple[int, int] = (2, 6)
    tokens: tuple[int, int] = (5, 20)
    """Of a response, at least and at most."""
    seen: int = 20
    """Tokens of an observation."""
    envs: Sequence[str] = ("game:GuessTheNumber-v0-easy", "math:GSM8K-v0")
    agents: Sequence[str] = ()
    """Each has an episode of each match; by default nothing is a match."""
    skill: float = 0.2
    """Share of solved episodes in the first update."""
    vocabulary: Vocabulary = field(default_factory=lambda: Vocabulary(2000))
    settings: dict[str, Any] = field(default_factory=lambda: {"advantage": "grpo", "env_kwargs": {"max_turns": 8}})
    entropies: bool = True


def write_run(folder: Path, plan: Plan | None = None, *, detail: Any = "full") -> None:
    """Write the report folder of a run: its records, and metrics.jsonl."""
    plan = plan or Plan()
    chance = np.random.default_rng(len(folder.name))
    recorder = RunRecorder(
        folder / "records",
        settings=plan.settings,
        versions={"gem-core": "0.1.0", "trl": "1.16.0"},
        detail=detail,
        tokenizer=plan.vocabulary,
    )
    run = Run(folder.name, list(plan.envs), {}, {}, "train")
    recorder.gem_rollout_start(run)
    lines: list[dict[str, float]] = []
    for number in range(1, plan.updates + 1):
        episodes = list(_episodes(folder.name, plan, number, chance))
        for one in episodes:
            recorder.gem_episode_end(one)
        recorder.gem_update(update_of(number, episodes, chance, entropies=plan.entropies))
        lines.append(
            {"step": float(number), "loss": 1 / number + chance.normal() / 20, "grad_norm": chance.exponential()}
        )
    recorder.gem_rollout_end(run, None)
    recorder.close()
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def damage_episode(folder: Path, number: int) -> None:
    """Change a byte of the body of a run's episode."""
    (file,) = (folder / "records").iterdir()
    bodies = [one for one in FrameReader(file).frames() if isinstance(read_head(one.head), EpisodeHead)]
    content = bytearray(file.read_bytes())
    content[bodies[number].body.start + 20] ^= 1
    file.write_bytes(content)


def _episodes(run: str, plan: Plan, update: int, chance: np.random.Generator) -> Iterator[Episode]:
    count = plan.tasks * plan.repeats
    for slot in range(count):
        task = (update - 1) * plan.tasks + slot // plan.repeats
        skill = plan.skill + (0.95 - plan.skill) * (update - 1) / max(1, plan.updates - 1)
        env_id = plan.envs[task % len(plan.envs)]
        for agent in plan.agents or ("",):
            solved = chance.random() < skill
            one = episode(env_id, task, slot, update - 1, run=run, plan=plan, chance=chance, solved=solved)
            one.agent = agent
            yield one


def episode(
    env_id: str,
    task: int,
    slot: int,
    number: int,
    *,
    run: str,
    plan: Plan,
    chance: np.random.Generator,
    solved: bool,
    said: Sequence[str] = (),
) -> Episode:
    """An episode of random words.

    Args:
        said: its responses; random ones by default.
    """
    low, high = plan.turns
    count = len(said) or int(chance.integers(low, high + 1))
    sequence = TokenSequence.starting(as_token_ids())
    turns: list[Turn] = []
    same = np.random.default_rng(task)  # episodes of a task begin alike
    for position in range(count):
        drawn = same if position == 0 else chance
        seen = plan.vocabulary.sample(drawn, plan.seen)
        sequence.add_prompt(as_token_ids([START, 3, NEWLINE, *seen, END, NEWLINE, START, 4, NEWLINE]))
        size = int(drawn.integers(plan.tokens[0], plan.tokens[1] + 1))
        ids = plan.vocabulary.sample(drawn, size - 1)
        start = len(sequence.ids)
        sure = chance.random(size) < 0.6
        logprobs = -np.where(sure, chance.exponential(0.02, size), chance.exponential(0.9, size))
        sequence.add_response(as_token_ids([*ids, END]), as_logprobs(logprobs.tolist()))
        response = said[position] if said else plan.vocabulary.decode(ids).strip()
        info = _info(position, count, chance)
        reward = float(solved) if position == count - 1 else 0.0
        observation = plan.vocabulary.decode(seen).strip()
        turns.append(Turn(0, start, start + size, observation, response, response, False, reward, info))
    failed = not solved and chance.random() < 0.06
    return Episode(
        env_id,
        seed=(1 << 62) + task,
        data_index=task if env_id.startswith("math") else None,
        slot=slot,
        number=number,
        task_id=task,
        turns=turns,
        sequences=[sequence],
        stop_reason=StopReason.ENV_ERROR if failed else StopReason.TERMINATED if solved else StopReason.TRUNCATED,
        success=solved,
        final_observation="Solved." if solved else "Not solved.",
        error=_ERROR if failed else None,
        provenance="gem-core 0.1.0",
        run=run,
    )


_ERROR = """game:GuessTheNumber-v0-easy failed in turn 3: ValueError: <b>boom</b>
Traceback (most recent call last):
  File "env.py", line 31, in step
    raise ValueError("<b>boom</b>")
ValueError: <b>boom</b>"""


def _info(position: int, count: int, chance: np.random.Generator) -> dict[str, Any]:
    if position == 1 and count > 2:
        return {"use_tool": True, "tool_type": "python", "tool_use_counter": 1}
    return {"invalid_action": True} if chance.random() < 0.08 else {}


def update_of(
    number: int, episodes: Sequence[Episode], chance: np.random.Generator, *, entropies: bool = True
) -> Update:
    """An update on all turns of these episodes, with advantages of their groups."""
    mean = {
        one.task_id: np.mean([other.total_reward for other in episodes if other.task_id == one.task_id])
        for one in episodes
    }
    turns = [(index, position) for index, one in enumerate(episodes) for position in range(len(one.turns))]
    sampled = [np.asarray(one.response_logprobs(turn)) for one in episodes for turn in one.turns]
    noise = [chance.normal(0, 0.05, len(one)) * np.minimum(1, -one) for one in sampled]
    return Update(
        number=number,
        episodes=[one.id for one in episodes],
        episode=np.array([index for index, _ in turns]),
        position=np.array([position for _, position in turns]),
        task_id=np.array([episodes[index].task_id for index, _ in turns]),
        advantage=np.array([episodes[index].total_reward - mean[episodes[index].task_id] for index, _ in turns]),
        return_to_go=np.array([sum(turn.reward for turn in episodes[index].turns[at:]) for index, at in turns]),
        logprobs=[one + more for one, more in zip(sampled, noise, strict=True)],
        entropies=[chance.exponential(0.8, len(one)) for one in sampled] if entropies else None,
    )
