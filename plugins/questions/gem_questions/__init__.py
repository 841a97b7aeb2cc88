"""What the environments over data sets share: the questions, their order, and an episode of one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_questions._given import Data as Data
    from gem_questions._given import Row as Row
    from gem_questions._questions import order as order
    from gem_questions._rows import as_table as as_table
    from gem_questions.arguments import read_references as read_references
    from gem_questions.arguments import speech_in as speech_in
    from gem_questions.env import QuestionEnv as QuestionEnv
    from gem_questions.env import as_list as as_list
    from gem_questions.extraction import last_tag as last_tag
    from gem_questions.extraction import published_block as published_block
    from gem_questions.extraction import published_box as published_box
    from gem_questions.forms import BLOCK as BLOCK
    from gem_questions.forms import BOX as BOX
    from gem_questions.forms import TAGS as TAGS
    from gem_questions.forms import ReplyForm as ReplyForm
    from gem_questions.graders import Grader as Grader
    from gem_questions.verdict import RIGHT as RIGHT
    from gem_questions.verdict import WRONG as WRONG
    from gem_questions.verdict import Verdict as Verdict

_HOME = {
    "BLOCK": "forms",
    "BOX": "forms",
    "Data": "_given",
    "Grader": "graders",
    "QuestionEnv": "env",
    "RIGHT": "verdict",
    "ReplyForm": "forms",
    "Row": "_given",
    "TAGS": "forms",
    "Verdict": "verdict",
    "WRONG": "verdict",
    "as_list": "env",
    "as_table": "_rows",
    "last_tag": "extraction",
    "order": "_questions",
    "published_block": "extraction",
    "published_box": "extraction",
    "read_references": "arguments",
    "speech_in": "arguments",
}

__all__ = [
    "BLOCK",
    "BOX",
    "RIGHT",
    "TAGS",
    "WRONG",
    "Data",
    "QuestionEnv",
    "ReplyForm",
    "Row",
    "Verdict",
    "as_list",
    "as_table",
    "last_tag",
    "order",
    "published_block",
    "published_box",
    "read_references",
    "speech_in",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
