"""WikiGame: from one page of an encyclopedia to another by following links."""

from __future__ import annotations

import re
from typing import Any

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError, near_matches
from gem_games._encyclopedia import Page
from gem_games._game import boxed
from gem_games._page_source import PageSource, page_source

BACK = "<PREV_PAGE>"
"""The move to the page before."""
SUMMARY = 100
"""Characters of a page's text that are shown."""
STEP_REWARD, INVALID_REWARD = -0.05, -0.2
VARIANTS = ("noregrets", "oneback", "freenav", "eidetic")
_MOVE = re.compile(r"\\boxed\{([^{}]+)\}")
_COMPARED = 60
"""Characters of a wrong title that are compared with links."""
_CHOICES_COMPARED = 100
"""Links that they are compared with; a page of a wiki may have thousands."""


class WikiGame(Env):
    """Two pages of an encyclopedia are drawn; reach the second from the first within `max_turns` moves.

    Action: the exact title of a link of the present page in the last box, `\\boxed{Title}`, or `\\boxed{<PREV_PAGE>}`.

    | variant | moves | a page without links |
    | --- | --- | --- |
    | `noregrets` | links of the present page | ends the episode as lost |
    | `oneback` | and back to the page before, never twice in a row | is left at once; costs a second turn |
    | `freenav` | and back as often as there is a page before | the same |
    | `eidetic` | every link seen since the reset | ends the episode as lost |

    | move | reward | episode |
    | --- | --- | --- |
    | to the target | 1 | terminated |
    | to another page, or back | -0.05 | continues |
    | to a page without links | 0 if lost, -0.1 if left at once | see above |
    | not allowed, or no such link | -0.2 | continues; the turn is used up |
    | no box | -0.2 | continues; the turn is used up |
    | on the last turn: a page or a wrong title | 0 | terminated and truncated |
    | on the last turn: back, no box, a page left at once | as above | truncated |

    Start and target are two different pages, and a way within `max_turns` leads from one to the other. The bundled
    encyclopedia has 390 pages of our own, from each of which every other one is at most nine links away. In a Kiwix
    file and in a wiki, the target is where a random walk of up to five links ends, so the shortest way is not known.

    Rules, rewards and endings are GEM's, with two differences. GEM draws pages that may be out of reach. Its
    `eidetic` keeps the links of earlier episodes; here a reset forgets them.

    Args:
        max_turns: the limit.
        variant: see above.
        pages: where other pages are (plugins/games/wiki_game.md): a text file with one in a line,
            `Title: text with [Links]`; a Kiwix file, whose name ends in `.zim`; or the address of a wiki's `api.php`.
            `None` means the bundled ones.

    Raises:
        EnvError: fewer than one turn, no such variant, or pages that cannot be used. On a reset or a step: a wiki gave
            no answer.
    """

    def __init__(self, max_turns: int = 10, variant: str = "noregrets", pages: str | None = None) -> None:
        if max_turns < 1:
            raise EnvError(f"max_turns must be at least 1, not {max_turns}")
        if variant not in VARIANTS:
            raise EnvError(f"variant must be one of {', '.join(VARIANTS)}, not {variant!r}")
        self.max_turns, self.variant, self.pages = max_turns, variant, pages

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Draw start and target.

        Raises:
            EnvError: no page leads to another one, or the pages cannot be used.
        """
        super().reset(seed=seed)
        self.turn = 0
        start, self.target = self._source.drawn(self.rng, self.max_turns)
        self.visited = [start]
        self.went_back = False
        self.seen = dict.fromkeys(self.page.links)
        return self._rules(), {"suffix": self.board()}

    @property
    def _source(self) -> PageSource:
        return page_source(self.pages)

    @property
    def page(self) -> Page:
        """The present page."""
        return self._source.page(self.visited[-1])

    def choices(self) -> tuple[str, ...]:
        """The titles that may be moved to now."""
        return tuple(self.seen) if self.variant == "eidetic" else self.page.links

    def _rules(self) -> str:
        target = self._source.page(self.target)
        example = self.rng.choice(self.choices())
        return (
            f"Follow links from the page {self.visited[0]} to the page {self.target} in at most {self.max_turns} "
            f"moves. {self.target} begins: {_summary(target)}\n"
            f"Put the exact title of a link in a box, for example {boxed(example)}. {self._way_back()}\n"
        )

    def _way_back(self) -> str:
        if self.variant == "noregrets":
            return "You cannot go back, but a page may link to the page you came from."
        if self.variant == "eidetic":
            return "You may move to any link that you have seen since the start."
        limit = ", but not twice in a row" if self.variant == "oneback" else ""
        return f"{boxed(BACK)} leads back to the page before{limit}, and takes a turn."

    def board(self) -> str:
        """The page, the target, the beginning of the text, and where one may go."""
        links = "\n".join(f"- {boxed(title)}" for title in self.choices())
        return f"Page: {self.page.title}\nTarget: {self.target}\nText: {_summary(self.page)}\nLinks:\n{links}"

    def step(self, action: str) -> StepResult:
        """Make a move."""
        self.turn += 1
        matches = [*_MOVE.finditer(action)]
        title = matches[-1][1].strip() if matches else ""
        if not title:
            return self._result(f"There is no move of the form {boxed('Title')}.", INVALID_REWARD, invalid=True)
        if title == BACK:
            return self._go_back()
        if title not in self.choices():
            hint = near_matches(title[:_COMPARED], self.choices()[:_CHOICES_COMPARED])
            return self._unless_last(f"That is no link here.{hint}", INVALID_REWARD, invalid=True)
        return self._visit(title)

    def sample_random_action(self) -> str:
        """A link, or now and then the way back where it is allowed."""
        if self._may_go_back and self.rng.random() < 0.2:
            return boxed(BACK)
        return boxed(self.rng.choice(self.choices()))

    def expert_action(self) -> str:
        """The link nearest to the target, where all distances are known: in the bundled pages and in a text file.

        Raises:
            NotImplementedError: in a Kiwix file and in a wiki.
        """
        near = {
            title: links
            for title in self.choices()
            if (links := self._source.links_between(title, self.target)) is not None
        }
        if near:
            return boxed(min(near, key=lambda title: near[title]))
        return boxed(BACK) if self._may_go_back else boxed(self.choices()[0])

    def render(self) -> str:
        """The board, the way so far and the turns, for a person."""
        return f"{self.board()}\nWay: {' > '.join(self.visited)}\nturn {self.turn} of {self.max_turns}"

    @property
    def _may_go_back(self) -> bool:
        allowed = self.variant == "freenav" or (self.variant == "oneback" and not self.went_back)
        return allowed and len(self.visited) > 1

    def _go_back(self) -> StepResult:
        if not self._may_go_back:
            return self._result("There is no way back now.", INVALID_REWARD, invalid=True)
        self.visited.pop()
        self.went_back = True
        return self._result(f"You are back at {self.page.title}.", STEP_REWARD)

    def _visit(self, title: str) -> StepResult:
        page = self._source.page(title)  # of another title where this one redirects
        if page.title != self.target and not page.links:
            return self._dead_end(page.title)
        self.visited.append(page.title)
        self.went_back = False
        self.seen |= dict.fromkeys(page.links)
        if page.title == self.target:
            return self._result(f"{page.title} is the target.", 1.0, ended=True, success=True)
        return self._unless_last(f"You are at {page.title}.", STEP_REWARD)

    def _dead_end(self, title: str) -> StepResult:
        if self.variant in ("noregrets", "eidetic"):
            self.visited.append(title)
            return self._result(f"{title} has no links, and the game is lost.", 0.0, ended=True)
        self.turn += 1
        self.went_back = True
        return self._result(f"{title} has no links. You are back at {self.page.title}.", 2 * STEP_REWARD)

    def _unless_last(self, observation: str, reward: float, *, invalid: bool = False) -> StepResult:
        """A result that the last turn turns into a loss without reward, as in GEM."""
        if self.turn < self.max_turns:
            return self._result(observation, reward, invalid=invalid)
        result = self._result(f"{observation} No turns are left.", 0.0, ended=True, invalid=invalid)
        return (*result[:3], True, result[4])

    def _result(
        self, observation: str, reward: float, *, ended: bool = False, success: bool = False, invalid: bool = False
    ) -> StepResult:
        info: Info = {"success": success, "suffix": self.board()}
        if invalid:
            info["invalid_action"] = True
        return observation, reward, ended, not ended and self.turn >= self.max_turns, info


def _summary(page: Page) -> str:
    return page.text if len(page.text) <= SUMMARY else f"{page.text[:SUMMARY]}..."
