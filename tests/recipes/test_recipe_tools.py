"""The calculations of the study `tools`, with the real tool in its sandbox."""

from __future__ import annotations

from contextlib import closing

import pytest

from gem_core import make
from recipes.policies import checked
from recipes.tools.calculation import CALCULATION, PAID, USES, with_paid_python, with_python
from recipes.tools.declared import MODEL
from recipes.tools.format import NUMBER, Format


@pytest.mark.parametrize(("wrapper", "paid"), [(with_python, 0.0), (with_paid_python, PAID)])
def test_a_program_gives_the_number_that_is_asked_for(wrapper, paid: float) -> None:
    with closing(wrapper(make(CALCULATION))) as env:
        for seed in range(6):
            observation, _ = env.reset(seed=seed)
            one, word, other = observation.split()[:3]
            sign = {"plus": "+", "minus": "-", "times": "*"}[word]
            shown, reward, terminated, *_ = env.step(f"<python>print({one}{sign}{other})</python>")
            assert (reward, terminated) == (paid, False)
            (result,) = NUMBER.findall(shown)
            _, reward, terminated, _, info = env.step(f"\\boxed{{{result}}}")
            assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_a_program_that_fails_is_not_paid() -> None:
    with closing(with_paid_python(make(CALCULATION))) as env:
        env.reset(seed=0)
        assert env.step("<python>print(</python>")[1] == 0.0


def test_wrong_and_missing_answers_end_without_reward() -> None:
    env = make(CALCULATION)
    for answer, invalid in ((r"\boxed{12345}", False), ("12", True), ("<python>print(1)</python>", True)):
        env.reset(seed=0)
        _, reward, terminated, _, info = env.step(answer)
        assert (reward, terminated, info["success"]) == (0.0, True, False)
        assert info.get("invalid_action", False) is invalid


def test_random_play_is_right_as_often_as_declared() -> None:
    assert abs(checked(MODEL) - MODEL.chance) < 0.05


def test_random_play_copies_numbers_and_tries_every_operator() -> None:
    programs: list[str] = []
    with closing(Format(with_python(make(CALCULATION)))) as env:
        for seed in range(20):
            observation, _ = env.reset(seed=seed)
            shown, done, uses = NUMBER.findall(observation), False, 0
            question = shown[:2]
            while not done:
                action = env.sample_random_action()
                if action.startswith("<python>"):
                    uses += 1
                    programs.append(action)
                    assert NUMBER.findall(action.replace("-", " ")) == question
                else:
                    assert NUMBER.findall(action)[0] in (shown[-1:] if uses else question)
                observation, _, done, *_ = env.step(action)
                shown += NUMBER.findall(observation)
            assert uses <= USES
    assert all(any(sign in program for program in programs) for sign in "+-*")
