"""Reading what a model wrote: where its thought ends, where a block or a box is.

Everything that looks for something in a response uses these functions: environments, tools, graders, evaluation. Calls
of tools are read by `gem_core.tools`.
"""

from gem_core.responses._blocks import Block, blocks
from gem_core.responses._boxes import boxes, last_box
from gem_core.responses._calls import WrittenCall, json_call, written_calls
from gem_core.responses._elements import Element, element
from gem_core.responses._json import decoded
from gem_core.responses._marks import MARKS
from gem_core.responses._thoughts import ReadResponse, read_response, speech_of

__all__ = [
    "MARKS",
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
    "read_response",
    "speech_of",
    "written_calls",
]
