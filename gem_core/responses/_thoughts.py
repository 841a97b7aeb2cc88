"""Where a model's thought ends and its speech begins.

What stands before the last closing mark of a thought is thought, whether the response or the template opened it. A mark
inside JSON, an element (`<python>...</python>`) or a fenced block is text, and so is one alone between backticks or
quotation marks. A response that begins with an opening mark and never closes it is all thought; anywhere else, an
opening mark is a word of the speech.

gpt-oss and Muse Glimmer write messages with headers. There the speech is the messages to the user, up to the first one
that calls a function, which stays as it is written.
"""

from __future__ import annotations

import re
from bisect import bisect
from functools import cached_property, lru_cache
from typing import NamedTuple

from gem_core.responses._json import Text, json_end

PAIRS = {
    "<think>": "</think>",  # DeepSeek, GLM, Hunyuan, Kimi K2, LFM2.5, MiniMax, Nemotron, Olmo, Qwen, SmolLM3
    "<thinking>": "</thinking>",  # models that are prompted for it
    "<reasoning>": "</reasoning>",  # so are others
    "<thought>": "</thought>",  # EXAONE Deep
    "[THINK]": "[/THINK]",  # Magistral, Ministral 3
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command A
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "<mm:think>": "</mm:think>",  # MiniMax-M3
    "<longcat_think>": "</longcat_think>",
    "◁think▷": "◁/think▷",  # Kimi-VL
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",  # Kimi K3
    "<|channel>thought": "<channel|>",  # Gemma 4
    "<|inner_prefix|>": "<|inner_suffix|>",  # Apertus
}
"""The marks that open and close a thought."""
_MESSAGE = "<|message|>"
_OPENING = re.compile(rf"\s*({'|'.join(map(re.escape, PAIRS))})")
_CLOSING = re.compile(rf"[<\[◁](?:{'|'.join(re.escape(mark[1:]) for mark in PAIRS.values())})")
_QUOTED = re.compile(r"(?<=([`\"']))[^`\"'\s]+\1(?!\1)")
_GAP = re.compile(r"\s*\n|[^\S\n]+")
_OBJECT = re.compile(r'\{\s*"')
_EDGE = re.compile(
    r"<(?P<shut>/|end_)?(?:start_)?(?P<tag>[A-Za-z｜][\w.:｜-]*)[^<>|\n]*>|<\|(?P<begin>\w+)>|<(?P<end>\w+)\|>"
    r"|<\|(?P<name>\w+)_(?:start|(?P<stop>end))\|>"
    r"|(?:^|(?<=[>\]▷]))[ \t]*(?P<fence>```|~~~)[`~]*[ \t]*(?P<language>\S?)",
    re.MULTILINE,
)
_HEADER = re.compile(
    r"(?:<\|start\|>(?P<role>\w+)|(?=<\|channel\|>)|\A(?=\s*to=))(?P<to>[^<\n]*)"
    r"(?:<\|channel\|>(?P<channel>\w*)(?P<more>[^<\n]*))?(?:<\|constrain\|>[^<\n]*)?<\|message\|>"
)
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_MESSAGE_END = re.compile(r"<\|(?:end|return|call|eom|eot)\|>|(?=<\|(?:start|channel)\|>)")


class ReadResponse(NamedTuple):
    """A response in two parts."""

    thought: str
    """The thought, marks included; empty if there is none."""
    speech: str
    """What was said: all that environments, tools and judges get. After a thought, blank lines at its start are left
    out, and blanks on the line of the mark."""


def read_response(text: str) -> ReadResponse:
    """Split a response into its thought and its speech, in time linear in its length."""
    return _read(text) if _may_have_marks(text) else ReadResponse("", text)


@lru_cache(maxsize=16)  # one response is read by its rollout and by its environment
def _read(text: str) -> ReadResponse:
    thought = ""
    while True:  # twice, but for texts that mix the marks of families
        read = _of_marks(text)
        if read.speech == text and _MESSAGE in text and (header := _first_header(text)):
            read = _of_messages(text, header)
        thought += read.thought
        if read.speech == text:
            return ReadResponse(thought, text)
        text = read.speech


def speech_of(text: str) -> str:
    """What a response says, without what was only thought. The speech of a speech is the same."""
    return _read(text).speech if _may_have_marks(text) else text


def _may_have_marks(text: str) -> bool:
    # Most responses have none, and this check is all that they cost: it runs in every turn.
    if "<" not in text:
        return ("]" in text and "THINK]" in text) or "◁" in text
    some = "hink" in text or "THINK" in text or "hought" in text or "easoning>" in text
    return some or "channel" in text or "<|inner_" in text or _MESSAGE in text


def _of_marks(text: str) -> ReadResponse:
    cut, past, containers = 0, 0, _Containers(text)
    opened = _OPENING.match(text)
    for mark in _CLOSING.finditer(text):
        start = mark.start()
        if start < past or (opened and mark[0] != PAIRS[opened[1]]) or _QUOTED.match(text, start):
            continue
        if (end := containers.end_around(start, max(cut, past), elements=not opened)) is not None:
            past = end
            continue
        cut = mark.end()
        opened = _OPENING.match(text, cut)
    cut = len(text) if opened else cut
    gap = _GAP.match(text, cut) if cut else None
    return ReadResponse(text[:cut], text[gap.end() if gap else cut :])


class _Edge(NamedTuple):
    start: int
    end: int
    what: str
    opens: bool


class _Containers:
    """The JSON objects, elements and fenced blocks of a text; it is asked about later and later places."""

    def __init__(self, text: str) -> None:
        self._text = Text(text)
        self._open: dict[str, int] = {}
        self._edges_read = self._objects_read = 0

    def end_around(self, place: int, start: int, *, elements: bool) -> int | None:
        """Where the JSON object ends that holds this place and begins after `start`, or if asked the element or block.

        `None` if there is none. An element or block that opens a second time before it closes was only mentioned.
        """
        return self._object_end(place, start) or (self._element_end(place, start) if elements else None)

    def _object_end(self, place: int, start: int) -> int | None:
        self._objects_read = max(self._objects_read, start)
        while found := _OBJECT.search(self._text, self._objects_read, place):
            end, valid = json_end(self._text, found.start())
            self._objects_read = max(end, found.end())
            if valid and end > place:
                return end
        return None

    def _element_end(self, place: int, start: int) -> int | None:
        edges, number = self._edges, self._edges_read
        while number < len(edges) and edges[number].start < place:
            edge, number = edges[number], number + 1
            if not edge.opens:
                self._open.pop(edge.what, None)
            elif edge.start >= start:
                self._open[edge.what] = edge.start
        self._edges_read = number
        for what in [*self._open]:
            same = self._places[what]
            after = bisect(same, (place, len(self._text)))
            if after < len(same) and not edges[same[after][1]].opens:
                return edges[same[after][1]].end
            del self._open[what]
        return None

    @cached_property
    def _edges(self) -> list[_Edge]:
        return [_edge(found) for found in _EDGE.finditer(self._text) if not _OPENING.match(found[0])]

    @cached_property
    def _places(self) -> dict[str, list[tuple[int, int]]]:
        """Of each kind of edge: where they are, and their numbers."""
        places: dict[str, list[tuple[int, int]]] = {}
        for number, edge in enumerate(self._edges):
            places.setdefault(edge.what, []).append((edge.start, number))
        return places


def _edge(found: re.Match[str]) -> _Edge:
    what = found["tag"] or found["begin"] or found["end"] or found["name"] or found["fence"]
    opens = bool(found["language"]) if found["fence"] else not (found["shut"] or found["end"] or found["stop"])
    return _Edge(found.start(), found.end(), what, opens)


def _first_header(text: str) -> re.Match[str] | None:
    """The header of the first message. One inside JSON, an element or a block, or behind a backtick, is text."""
    past, containers = 0, _Containers(text)
    for header in _HEADER.finditer(text):
        start = header.start()
        if start < past or text[max(0, start - 1) : start] == "`":
            continue
        end = containers.end_around(start, past, elements=True)
        if end is None:
            return header
        past = end
    return None


def _of_messages(text: str, first: re.Match[str]) -> ReadResponse:
    thought: list[str] = []
    said: list[str] = []
    header: re.Match[str] | None = first
    lead = text[: first.start()]
    # A message that the template opened has an end, and no header.
    (thought if _MESSAGE_END.search(lead) else said).append(lead)
    while header and header["role"] in (None, "assistant"):
        to = _RECIPIENT.search(f"{header['to']}{header['more'] or ''}")
        if to and to[1] not in ("user", "self"):
            said.append(text[header.start() :])
            break
        end = _MESSAGE_END.search(text, header.end())
        is_thought = to[1] == "self" if to else header["channel"] == "analysis"
        (thought if is_thought else said).append(text[header.end() : end.start() if end else len(text)])
        header = _HEADER.search(text, end.end()) if end else None
    return ReadResponse("\n".join(thought), "\n".join(filter(None, map(str.strip, said))))
