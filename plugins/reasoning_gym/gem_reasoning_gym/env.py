"""A question of a reasoning-gym data set, and one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError
from gem_core.responses import last_box
from gem_grading import grade
from gem_questions import BOX, ReplyForm, published_box
from gem_questions.forms import checked_instruction, instructed
from gem_reasoning_gym._entries import HIGHEST, Definition, Entry, drawn, entry
from gem_reasoning_gym._examples import example
from gem_reasoning_gym._golds import corrected
from gem_reasoning_gym.scoring import compared, compares, function_name

MAX_ANSWER_LENGTH = 32_768
"""Characters of an answer; those of reasoning-gym's own answers stay below 5,000."""
_RIGHT = 1.0 - 1e-9
_FORM = ReplyForm(
    BOX.mark,
    f"{BOX.text} What the question says about the form of the answer is meant for the content of the box.",
)


class ReasoningGym(Env):
    """Shows a question; the content of the last `\\boxed{...}` of the answer is scored by the data set.

    | answer | reward | episode |
    | --- | --- | --- |
    | has a box | the data set's score, 0 to 1 | terminated and truncated, as upstream |
    | has none, or it is not closed | 0 | the same, `info["invalid_action"]` |
    | is too long, takes two seconds of CPU, or makes the scoring raise | 0 | the same, `info["grading_error"]` |

    `info["score"]` is the score, and `info["success"]` says that it is 1: many data sets pay a part for less.

    | `reset(...)` | entry of the data set |
    | --- | --- |
    | `data_index=k`, as the engine calls it | number `k`; they never end, or begin anew after `size` entries |
    | `seed=s` | drawn |
    | nothing | the next number |
    | `row=k` | number `k`, for evaluation |

    No answer is evaluated: numbers, tables and formulas are parsed.

    `rg:<name>-v0` shows the bare question and pays reasoning-gym's score, for comparison with published results.
    `rg:<name>` says that the answer has to stand in a box, and white space around it in the box does not count.

    Most scores are reasoning-gym's: some data sets pay up to 0.05 for any text in a box, and those that compare text
    pay a part for an answer that merely contains the right one. Where reasoning-gym pays more than that for answers
    that solve nothing, or where its answers are wrong, `rg:<name>` has a score of our own. game_of_life_halting, where
    any text was right, takes True or False.

    - countdown, puzzle24: the numbers of the question, each once, have to give the exact value; all else pays 0. `-v0`
      pays 0.01 or 0.05 for it, and in puzzle24 all for any four numbers.
    - coin_flip: 0.0001 off at most, and 1 % of the probability. `-v0` takes 0 for a small probability, and pays for
      the digits that an answer begins with.
    - complex_arithmetic: nan is wrong. `-v0` takes it for right.
    - game_of_life: pays for live cells that are right, as a part of those that are live on either board. `-v0` pays
      for dead cells, which most are.
    - number_sorting: nan is no number. `-v0` pays in full for a list of it.
    - polynomial_equations: where there is no solution, the answer is empty. `-v0` takes any text then.
    - propositional_logic: a conclusion of two letters at most, when none that says more follows. `-v0` takes any that
      follows, a premise and `(P or Q)` among them.
    - sokoban: every move has to be possible, and the last one solves the puzzle. `-v0` leaves out moves against walls,
      so that a long walk without a plan solves a tenth of the puzzles.
    - basic_arithmetic, knight_swap, mahjong_puzzle, quantum_lock, syllogism, time_intervals: some of reasoning-gym's
      answers are not right, and `-v0` pays for them. Here the question decides (docs/rg_answers.md).
    - spell_backward: text after the word is wrong, and less than half of the letters pay nothing.
    - advanced_geometry, fraction_simplification, gsm_symbolic, kakurasu, knights_knaves, letter_jumble, survo,
      time_intervals, word_sorting: an answer is all that stands in the box. `-v0` reads its start, or leaves out what
      it does not know, and takes "not 70" for 70.
    - arc_agi, calendar_arithmetic, emoji_mystery, figlet_font, fraction_simplification, futoshiki, knights_knaves,
      letter_jumble, mini_sudoku, pool_matrix, prime_factorization, rearc, rectangle_count, sentence_reordering,
      sudoku, time_intervals, tsumego, word_ladder, word_sorting: what answers earn that solve nothing is taken off
      (`gem_reasoning_gym.scorers`), and the rest scaled to 1.

    Entries are the same in every process. reasoning-gym makes isomorphic_strings, knight_swap,
    polynomial_multiplication, ransom_note and word_ladder in the order of sets of text; here these sets are sorted.

    Args:
        dataset: its name in reasoning-gym.
        data_seed: the data set's own seed; another one gives other entries.
        size: number of entries, to ask the same ones again and again; `None` never ends.
        published: pay what reasoning-gym does, also where an answer that solves nothing earns it, and nothing for a
            right answer with white space around it.
        instruction: `True` says in `info["suffix"]` that the answer has to stand in a box; `False` does not; a text is
            shown in place of the usual one.
        settings: fields of the data set's configuration, for example its difficulty.

    Raises:
        EnvKwargsError: the data set has no such setting; the message names the near match.
        EnvError: it refuses a value, or `size` is no number of entries.
    """

    takes_data_index = True
    instead_of: ClassVar[Mapping[str, str]] = {**Env.instead_of, "idx": "Use reset(row=...)"}

    def __init__(
        self,
        dataset: str,
        *,
        data_seed: int = 42,
        size: int | None = None,
        published: bool = False,
        instruction: bool | str = True,
        **settings: Any,
    ) -> None:
        if type(data_seed) is not int or not 0 <= data_seed < HIGHEST:
            raise EnvError(f"data_seed must be a whole number from 0 to {HIGHEST - 1}, not {data_seed!r}")
        if size is not None and not (type(size) is int and 1 <= size <= HIGHEST):
            raise EnvError(f"size must be a number of entries from 1 to {HIGHEST}, or None, not {size!r}")
        self._size = size
        self._instruction = checked_instruction(instruction)
        self._definition = Definition.of(dataset, settings)
        self._published = published
        self._compares = compares(self._definition, published)
        self._grader = function_name(self._definition, published)
        self._box = published_box if published else last_box
        self._data_seed = data_seed
        self._next = 0
        self._entry: Entry = {"question": "", "answer": None}

    @property
    def data_size(self) -> int | None:
        """`size`."""
        return self._size

    def reset(
        self, seed: int | None = None, *, data_index: int | None = None, row: int | None = None, **options: Any
    ) -> ResetResult:
        """Show a question; the table above says which.

        Raises:
            EnvError: there is no entry of that number.
        """
        super().reset(seed=seed, **options)
        if row is not None:
            self._entry = entry(self._definition, self._data_seed, self._checked(row))
        elif data_index is None and seed is not None:
            self._entry = self._drawn()
        else:
            self._entry = self._asked(self._next if data_index is None else data_index)
            self._next += data_index is None
        if not self._published:
            self._entry = corrected(self._definition.name, self._entry)
        return self._entry["question"], instructed({}, _FORM, self._instruction)

    def step(self, action: str) -> StepResult:
        """Grade the answer."""
        answer = self._box(action)
        if answer is None:
            return "", 0.0, True, True, {"success": False, "score": 0.0, "invalid_action": True}
        value, error = self._score(answer if self._published else answer.strip())
        info: Info = {"success": value >= _RIGHT, "score": value}
        if error is not None:
            info["grading_error"] = error
        return "", value, True, True, info

    def sample_random_action(self) -> str:
        """A number in a box, or, half of the time where the data set tells one, the right answer."""
        answer, number = self._entry["answer"], self.rng.randint(0, 99)
        told = isinstance(answer, str) and self._box(_boxed(answer)) == answer
        return _boxed(answer if told and self.rng.random() < 0.5 else number)

    def expert_action(self) -> str:
        """The answer that the data set has, in a box.

        Raises:
            NotImplementedError: the data set has none.
        """
        return _boxed(example(self._definition.name, self._entry))

    def render(self) -> str:
        """The question."""
        return self._entry["question"]

    def _checked(self, number: int) -> int:
        if self._size is not None and number >= self._size:
            raise EnvError(f"{self!r} has no entry {number}: size={self._size}, and entries are numbered from 0")
        return number

    def _drawn(self) -> Entry:
        if self._size is None:
            return drawn(self._definition, self._data_seed, self.rng)
        return entry(self._definition, self._data_seed, self.rng.randrange(self._size))

    def _asked(self, number: int) -> Entry:
        return entry(self._definition, self._data_seed, number if self._size is None else number % self._size)

    def _score(self, answer: str) -> tuple[float, str | None]:
        if len(answer) > MAX_ANSWER_LENGTH:
            return 0.0, f"the answer has {len(answer)} characters, and {MAX_ANSWER_LENGTH} are graded"
        if self._compares:
            return compared(answer, self._entry), None
        value, error = grade(self._grader, answer, self._entry)
        # An answer that took hold of its process may have said anything.
        if error is None and isinstance(value, float) and 0 <= value <= 1:
            return value, None
        return 0.0, error or f"the score must be from 0 to 1, and is {value!r:.80}"


def _boxed(content: object) -> str:
    return f"\\boxed{{{content}}}"
