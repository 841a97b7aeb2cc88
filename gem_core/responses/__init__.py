"""Reading what a model wrote: where its thought ends, and where a block, a box, an element or a call is.

Everything that looks for something in a response uses these functions: environments, tools, graders, evaluation.
`gem_core.tools` checks calls against the schemas of their functions.
"""

from gem_core.responses._blocks import Block, blocks
from gem_core.responses._boxes import boxes, last_box
from gem_core.responses._calls import WrittenCall, json_call, python_call, written_calls
from gem_core.responses._elements import Element, element
from gem_core.responses._json import decoded
from gem_core.responses._marks import MARKS
from gem_core.responses._thoughts import PAIRS, ReadResponse, read_response, speech_of

__all__ = [
    "MARKS",
    "PAIRS",
    "Block",
    "Element",
    "ReadResponse",
    "WrittenCall",
    "blocks",
    "boxes",
    "decoded",
    "element",
    "json_call",
    "last_box",
    "python_call",
    "read_response",
    "speech_of",
    "written_calls",
]
