"""An extension of Griffe: the code of an `Example:` in a docstring is shown as code."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^Example:\n(?= +(?!>>>))", re.MULTILINE)


class CodeExamples(griffe.Extension):
    """Google's style makes the lines below `Example:` prose, unless they begin with `>>>`."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Put an empty line below the word, which makes a block of code of what follows."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub("For example:\n\n", obj.docstring.value)
