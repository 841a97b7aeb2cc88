"""WikiGame, played: shortest ways over the bundled encyclopedia, and the four variants on a small graph."""

from __future__ import annotations

from pathlib import Path

import pytest

import gem_core
from gem_core.errors import EnvError
from gem_games._encyclopedia import Encyclopedia, encyclopedia
from gem_games.wiki_game import WikiGame

BOOK = encyclopedia(None)
BACK = "\\boxed{<PREV_PAGE>}"
# Whatever start is drawn, B leads on to every page; only the last is a dead end.
SMALL = """
A: A leads to [B] and to [End].
B: B leads to [A] and [C].
C: C leads to [B] and [D].
D: D leads to [C].
End: Nothing follows.
"""


def move(title: str) -> str:
    return f"\\boxed{{{title}}}"


def way(book: Encyclopedia, start: str, target: str) -> list[str]:
    """A shortest way, without its start."""
    steps: list[str] = []
    while start != target:
        start = min(book.pages[start].links, key=lambda link: book.distances(link).get(target, 10**6))
        steps.append(start)
    return steps


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.txt"
    path.write_text(SMALL)
    return str(path)


def from_a_to_d(pages: str, variant: str, max_turns: int = 6) -> WikiGame:
    """A game whose start is A and whose target is D."""
    env = WikiGame(max_turns, variant, pages)
    for seed in range(1000):
        env.reset(seed=seed)
        if (env.visited, env.target) == (["A"], "D"):
            return env
    raise AssertionError("A and D are never drawn")


def test_the_encyclopedia_is_connected_and_has_three_hundred_pages() -> None:
    assert len(BOOK.titles) >= 300
    assert len({page.text for page in BOOK.pages.values()}) == len(BOOK.titles)
    for page in BOOK.pages.values():
        assert 2 <= len(page.links) <= 40
        assert 50 <= len(page.text) <= 700, page.title
        assert all(link in page.text for link in page.links)
    ways = [BOOK.distances(title) for title in BOOK.titles]
    assert all(len(distances) == len(BOOK.titles) for distances in ways)
    assert max(max(distances.values()) for distances in ways) == 9


@pytest.mark.parametrize("env_id", ["game:WikiGame-v0-easy", "game:WikiGame-v0-hard"])
def test_the_shortest_way_wins(env_id: str) -> None:
    with gem_core.make(env_id) as env:
        assert isinstance(env, WikiGame)
        for seed in range(8):
            rules, info = env.reset(seed=seed)
            start, target = env.visited[0], env.target
            assert start in rules
            assert target in rules
            assert f"Page: {start}\nTarget: {target}\n" in info["suffix"]
            steps = way(BOOK, start, target)
            assert len(steps) == BOOK.distances(start)[target]
            for title in steps[:-1]:
                assert move(title) in info["suffix"]
                _, reward, terminated, truncated, info = env.step(f"I take {move(title)}.")
                assert (reward, terminated, truncated, info["success"]) == (-0.05, False, False, False)
            _, reward, terminated, truncated, info = env.step(move(steps[-1]))
            assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)


def test_seeds_draw_many_pairs_and_the_same_again() -> None:
    env = gem_core.make("game:WikiGame-v0-hard")
    assert isinstance(env, WikiGame)
    pairs = set()
    for seed in range(40):
        first = env.reset(seed=seed)
        pairs.add((env.visited[0], env.target))
        assert env.reset(seed=seed) == first
    assert len(pairs) > 35
    assert all(start != target for start, target in pairs)


def test_a_snapshot_continues_the_same_game(small: str) -> None:
    env = from_a_to_d(small, "freenav")
    env.step(move("B"))
    state = env.get_state()
    first = env.step(move("C"))
    env.set_state(state)
    assert env.step(move("C")) == first


@pytest.mark.parametrize("wrong", [move("D"), move("a"), move("Nowhere"), move("\ud800"), BACK])
def test_what_is_not_allowed_costs_a_fifth_and_the_turn(small: str, wrong: str) -> None:
    env = from_a_to_d(small, "noregrets")
    _, reward, terminated, truncated, info = env.step(wrong)
    assert (reward, terminated, truncated, info["invalid_action"]) == (-0.2, False, False, True)
    assert (env.visited, env.turn) == (["A"], 1)


@pytest.mark.parametrize("unreadable", ["", "B", "\\boxed{}", "\\boxed{ }", "\\boxed{B"])
def test_a_move_without_a_box_does_not_end_the_game(small: str, unreadable: str) -> None:
    env = from_a_to_d(small, "noregrets", max_turns=3)
    assert env.step(unreadable)[1:4] == (-0.2, False, False)
    env.step(unreadable)
    assert env.step(unreadable)[1:4] == (-0.2, False, True), "unreadable on the last turn: truncated only"


def test_the_last_box_counts_and_a_hint_names_what_was_meant(small: str) -> None:
    env = from_a_to_d(small, "noregrets")
    assert env.step(f"{move('End')} or {move('B')}")[0] == "You are at B."
    env = WikiGame()
    env.reset(seed=0)
    env.visited = ["Africa"]
    assert "Did you mean 'African elephant'" in env.step(move("african elephant"))[0]


@pytest.mark.parametrize("last", [move("B"), move("Nowhere")])
def test_a_page_or_a_wrong_title_on_the_last_turn_pays_nothing(small: str, last: str) -> None:
    env = from_a_to_d(small, "noregrets", max_turns=3)
    env.step(move("B"))
    env.step(move("A"))
    _, reward, terminated, truncated, info = env.step(last)
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, True, False)


def test_the_target_on_the_last_turn_wins(small: str) -> None:
    env = from_a_to_d(small, "noregrets", max_turns=3)
    env.step(move("B"))
    env.step(move("C"))
    assert env.step(move("D"))[1:4] == (1.0, True, False)


@pytest.mark.parametrize("variant", ["noregrets", "eidetic"])
def test_a_page_without_links_loses(small: str, variant: str) -> None:
    env = from_a_to_d(small, variant)
    _, reward, terminated, truncated, info = env.step(move("End"))
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)


@pytest.mark.parametrize("variant", ["oneback", "freenav"])
def test_a_page_without_links_is_left_for_two_turns(small: str, variant: str) -> None:
    env = from_a_to_d(small, variant)
    assert env.step(move("End"))[1:4] == (-0.1, False, False)
    assert (env.visited, env.turn) == (["A"], 2)
    env = from_a_to_d(small, variant, max_turns=3)
    env.step(move("Nowhere"))
    env.step(move("Nowhere"))
    assert env.step(move("End"))[1:4] == (-0.1, False, True)


def test_one_step_back_and_not_two(small: str) -> None:
    env = from_a_to_d(small, "oneback", max_turns=9)
    assert env.step(BACK)[4]["invalid_action"], "there is no page before the first"
    env.step(move("B"))
    env.step(move("C"))
    assert env.step(BACK)[:2] == ("You are back at B.", -0.05)
    assert env.step(BACK)[1] == -0.2
    env.step(move("C"))
    assert env.step(BACK)[1] == -0.05, "a page lies between"


def test_free_navigation_goes_back_to_the_start(small: str) -> None:
    env = from_a_to_d(small, "freenav", max_turns=5)
    for title in ("B", "C"):
        env.step(move(title))
    assert env.step(BACK)[0] == "You are back at B."
    assert env.step(BACK)[0] == "You are back at A."
    assert env.step(BACK)[1:4] == (-0.2, False, True)


def test_every_link_that_was_seen_can_be_taken(small: str) -> None:
    env = from_a_to_d(small, "eidetic")
    env.step(move("B"))
    env.step(move("C"))
    env.step(move("B"))
    assert move("D") in env.board()
    assert env.step(move("D"))[1:4] == (1.0, True, False)
    env.reset(seed=1)
    assert {*env.seen} == {*env.page.links}, "a reset forgets"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A: to [B]\nB: back to [C]\n", "'B' has a link to 'C'"),
        ("A: to [A]\nB: no\n", "'A' has a link to 'A'"),
        ("A: one\nA: two\n", "two pages have the title 'A'"),
        ("A: alone\n", "need two pages"),
        ("no colon\n", "Title: text with"),
        ("A: one\nB: two\n", "no page of"),
    ],
)
def test_pages_that_cannot_be_played_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "pages.txt"
    path.write_text(text)
    with pytest.raises(EnvError, match=said):
        gem_core.make("game:WikiGame-v0-easy", pages=str(path)).reset(seed=0)


def test_arguments_that_cannot_be_played_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match="max_turns must be at least 1"):
        gem_core.make("game:WikiGame-v0-easy", max_turns=0)
    with pytest.raises(EnvError, match="variant must be one of noregrets, oneback"):
        gem_core.make("game:WikiGame-v0-easy", variant="twice")
    with pytest.raises(EnvError, match="cannot be read"):
        gem_core.make("game:WikiGame-v0-easy", pages=str(tmp_path / "none.txt")).reset(seed=0)
