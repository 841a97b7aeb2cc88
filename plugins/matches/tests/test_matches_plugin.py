"""The matches that the project brings: rules, scripts and the exploitability of a policy for Kuhn poker."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import permutations, product

import pytest

import gem_core
from gem_core import Match
from gem_core._match_env import MatchEnv
from gem_core.errors import EnvError
from gem_core.plugins import manager
from gem_matches.kuhn import CARDS, INFORMATION_SETS, exploitability, payoff, value
from gem_testing import check_env

IDS = [registration.spec.id for registration in manager.registrations("gem_envs", "match")]
OPPONENTS = ("player 0", "player 1")


def match_of(env_id: str, **kwargs: object) -> Match:
    env = gem_core.make(env_id, **kwargs)
    assert isinstance(env, MatchEnv)
    return env.match


def played(match: Match, *moves: str) -> dict[str, float]:
    """The total rewards after these boxes, each by the next agent."""
    totals = dict.fromkeys(match.agents, 0.0)
    left = [*moves]
    while left and not match.over:
        step = match.step({agent: f"\\boxed{{{left.pop(0)}}}" for agent in match.acting})
        for agent, reward in step.rewards.items():
            totals[agent] += reward
    assert not left
    return totals


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("opponents", [{}, {"player 0": "random"}, {"player 1": "random"}], ids=str)
def test_matches_keep_the_contract(env_id: str, opponents: dict[str, str]) -> None:
    check_env(env_id, opponents=opponents)


@pytest.mark.parametrize("env_id", IDS)
def test_scripts_make_allowed_moves(env_id: str) -> None:
    match = match_of(env_id)
    for script in match.scripts:
        for seat in OPPONENTS:
            with gem_core.make(env_id, opponents={seat: script}) as env:
                for seed in range(5):
                    env.reset(seed=seed)
                    done = False
                    while not done:
                        *_, terminated, truncated, info = env.step(env.sample_random_action())
                        assert not info.get("invalid_action")
                        done = terminated or truncated


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("action", ["", "no box", "\\boxed{}", "\\boxed{17}", "\\boxed{accept}", "\\boxed{-1 0 0}"])
def test_an_answer_without_an_allowed_move_costs_its_agent_alone(env_id: str, action: str) -> None:
    match = match_of(env_id)
    match.reset(seed=1)
    acting = match.acting[0]
    step = match.step({agent: action if agent == acting else "\\boxed{cooperate}" for agent in match.acting})
    assert match.over
    assert step.rewards[acting] < 0
    assert [step.rewards[agent] for agent in match.agents if agent != acting] == [0.0]
    assert step.infos[acting]["invalid_action"]
    assert not any(info["success"] for info in step.infos.values())


@pytest.mark.parametrize(
    ("cells", "won"),
    [
        ("1 4 2 5 3", 1.0),
        ("1 4 2 5 9 6", -1.0),
        ("1 2 5 3 9", 1.0),
        ("3 1 5 2 7", 1.0),
        ("1 2 4 3 7", 1.0),
        ("1 2 3 5 4 6 8 7 9", 0.0),
    ],
)
def test_three_in_a_row_win(cells: str, won: float) -> None:
    match = match_of("match:TicTacToe-v0")
    match.reset(seed=1)
    assert played(match, *cells.split()) == {"player 0": won, "player 1": -won}
    assert match.over


def test_a_taken_cell_is_not_allowed() -> None:
    match = match_of("match:TicTacToe-v0")
    match.reset(seed=1)
    assert played(match, "5", "5") == {"player 0": 0.0, "player 1": -1.0}


def test_the_optimal_player_never_loses() -> None:
    rng = random.Random(0)
    match = match_of("match:TicTacToe-v0")
    for game in range(40):
        match.reset(seed=game)
        optimal = match.agents[game % 2]
        total = 0.0
        while not match.over:
            [agent] = match.acting
            strong = agent == optimal
            action = match.scripted_action("optimal", agent, rng) if strong else match.random_action(agent, rng)
            total += match.step({agent: action}).rewards.get(optimal, 0.0)
        assert total >= 0


@pytest.mark.parametrize(
    ("moves", "chips"),
    [("pass pass", 1), ("bet bet", 2), ("pass bet bet", 2), ("bet pass", None), ("pass bet pass", None)],
)
def test_kuhn_pays_the_higher_card_or_the_one_who_stays(moves: str, chips: int | None) -> None:
    match = match_of("match:KuhnPoker-v0")
    for seed in range(6):
        seen = match.reset(seed=seed)
        cards = {agent: text.split("yours is ")[1][0] for agent, text in seen.items()}
        higher = max(cards, key=lambda agent: CARDS.index(cards[agent]))
        stays = "player 0" if moves == "bet pass" else "player 1"
        winner, won = (higher, chips) if chips else (stays, 1)
        loser = next(agent for agent in cards if agent != winner)
        assert played(match, *moves.split()) == {winner: won, loser: -won}


def test_kuhn_shows_a_card_to_its_owner_only() -> None:
    match = match_of("match:KuhnPoker-v0")
    deals = set()
    for seed in range(60):
        seen = match.reset(seed=seed)
        deals.add("".join(text.split("yours is ")[1][0] for text in seen.values()))
        given_up = match.step({"player 0": "\\boxed{bet}"}), match.step({"player 1": "\\boxed{pass}"})
        assert "cards were" not in str(given_up), "a hand that nobody called stays hidden"
    assert deals == {"".join(deal) for deal in permutations(CARDS, 2)}


def equilibrium(alpha: float) -> dict[tuple[str, str], float]:
    """Kuhn's family of equilibria: `player 0` bets a jack with `alpha`, from 0 to 1/3."""
    return {
        ("J", ""): alpha,
        ("Q", ""): 0.0,
        ("K", ""): 3 * alpha,
        ("J", "pb"): 0.0,
        ("Q", "pb"): alpha + 1 / 3,
        ("K", "pb"): 1.0,
        ("J", "p"): 1 / 3,
        ("Q", "p"): 0.0,
        ("K", "p"): 1.0,
        ("J", "b"): 0.0,
        ("Q", "b"): 1 / 3,
        ("K", "b"): 1.0,
    }


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1 / 3])
def test_an_equilibrium_cannot_be_exploited(alpha: float) -> None:
    policy = equilibrium(alpha)
    assert exploitability(policy) == pytest.approx(0.0, abs=1e-12)
    assert value(policy, policy) == pytest.approx(-1 / 18), "what Kuhn found"


def test_any_other_policy_can() -> None:
    assert exploitability(dict.fromkeys(INFORMATION_SETS, 0.5)) == pytest.approx(11 / 24), "the study's 0.458"
    assert exploitability({**equilibrium(0.1), ("Q", ""): 0.5}) > 0.01
    rng = random.Random(0)
    assert all(exploitability({one: rng.random() for one in INFORMATION_SETS}) > 0 for _ in range(20))


def test_the_value_is_that_of_played_matches() -> None:
    rng = random.Random(0)
    policy = {one: rng.random() for one in INFORMATION_SETS}
    total = 0.0
    for deal in permutations(CARDS, 2):
        for history, chance in _histories(policy, deal):
            total += chance * payoff(*deal, history)
    assert value(policy, policy) == pytest.approx(total / 6)


def _histories(policy: dict[tuple[str, str], float], deal: tuple[str, ...]) -> Iterable[tuple[str, float]]:
    """The probability of each whole match, as a product of single moves."""
    for history in ("pp", "pbp", "pbb", "bp", "bb"):
        chance = 1.0
        for turn, move in enumerate(history):
            bet = policy[deal[turn % 2], history[:turn]]
            chance *= bet if move == "b" else 1 - bet
        yield history, chance


def test_a_policy_must_know_what_to_do() -> None:
    with pytest.raises(EnvError, match="give a probability of a bet for each"):
        exploitability({})


def test_the_dilemma_pays_by_both_choices() -> None:
    match = match_of("match:IteratedDilemma-v0", rounds=4)
    match.reset(seed=1)
    rewards = []
    for first, second in product(("cooperate", "defect"), repeat=2):
        step = match.step({"player 0": f"\\boxed{{{first}}}", "player 1": f"\\boxed{{{second}}}"})
        rewards += [round(step.rewards[agent] * 20, 9) for agent in match.agents]
    assert rewards == [3, 3, 0, 5, 5, 0, 1, 1]
    assert match.over
    assert step.infos["player 0"]["success"]


def test_tit_for_tat_repeats_the_other_one() -> None:
    with gem_core.make("match:IteratedDilemma-v0", rounds=3, opponents={"player 1": "tit for tat"}) as env:
        env.reset(seed=1)
        seen = [env.step(f"\\boxed{{{move}}}")[0] for move in ("defect", "cooperate", "cooperate")]
    assert [text.split(", ")[1].split(".")[0] for text in seen] == [
        "player 1 chose cooperate",
        "player 1 chose defect",
        "player 1 chose cooperate",
    ]


def test_a_negotiation_pays_what_each_gets_by_its_own_values() -> None:
    match = match_of("match:Negotiation-v0")
    for seed in range(20):
        seen = match.reset(seed=seed)
        counts = [int(word.split()[0]) for word in seen["player 0"].split("divide ")[1].split(" with")[0].split(", ")]
        worth = {agent: _values(text) for agent, text in seen.items()}
        assert all(sum(a * b for a, b in zip(counts, values, strict=True)) == 10 for values in worth.values())
        assert worth["player 0"] != worth["player 1"]
        wanted = [1, 0, counts[2]]
        rewards = played(match, " ".join(map(str, wanted)), "accept")
        left = [count - one for count, one in zip(counts, wanted, strict=True)]
        assert rewards == {
            "player 0": sum(a * b for a, b in zip(wanted, worth["player 0"], strict=True)) / 10,
            "player 1": sum(a * b for a, b in zip(left, worth["player 1"], strict=True)) / 10,
        }


def test_a_negotiation_shows_words_but_no_values_of_the_other() -> None:
    env = gem_core.make("match:Negotiation-v0")
    rules, _ = env.reset(seed=2)
    shown, *_ = env.step("I like hats. \\boxed{0 1 0}")
    assert "player 0 says: I like hats." in shown
    assert "player 0 wants 0 books, 1 hats, 0 balls." in shown
    assert rules.split("worth to you: ")[1].split(".")[0] not in shown


def test_a_negotiation_without_an_agreement_pays_nothing() -> None:
    match = match_of("match:Negotiation-v0", max_turns=3)
    match.reset(seed=1)
    assert played(match, "0 0 0", "0 0 0", "0 0 0") == {"player 0": 0.0, "player 1": 0.0}
    assert match.over


def _values(rules: str) -> list[int]:
    return [int(one.split()[1]) for one in rules.split("worth to you: ")[1].split(".")[0].split(", ")]


@pytest.mark.parametrize("kwargs", [{"rounds": 0}])
def test_a_dilemma_needs_a_round(kwargs: dict[str, int]) -> None:
    with pytest.raises(EnvError, match="at least one round"):
        gem_core.make("match:IteratedDilemma-v0", **kwargs)


def test_thoughts_in_a_negotiation_stay_with_who_had_them() -> None:
    env = gem_core.make("match:Negotiation-v0")
    env.reset(seed=3)
    shown, *_, info = env.step("<think>The hats are worth 6 to me: \\boxed{accept}</think>I need books. \\boxed{1 0 0}")
    assert info["agent"] == "player 1"
    assert "I need books." in shown
    assert "worth 6 to me" not in shown
    assert "<think>" not in shown


@pytest.mark.parametrize("name", ["IteratedDilemma", "KuhnPoker", "Negotiation", "TicTacToe"])
def test_an_agent_that_cannot_go_on_gets_the_least_that_a_match_pays(name: str) -> None:
    _, info = gem_core.make(f"match:{name}-v0").reset(seed=0)
    assert info["agent_forfeits"].keys() == {"player 0", "player 1"}
    for agent, rewards in info["agent_forfeits"].items():
        [other] = rewards.keys() - {agent}
        assert rewards[agent] <= -1.0
        assert rewards[other] >= 0.0
