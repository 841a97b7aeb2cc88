"""Actions that authors do not expect and that a policy writes sooner or later."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

CANARY = "gem_testing._canary"
"""A module that is imported only if an environment evaluates an action as Python."""

_PLANES = "".join(chr(plane * 0x1_0000 + 0x2603) for plane in range(17))
_CODE = f"__import__({CANARY!r})"


def adversarial_actions(example: str) -> Mapping[str, str]:
    """Actions that an environment has to survive, by what they are made of.

    Args:
        example: a valid action; some of the actions have its format, to get past the parser.
    """

    def with_number(text: str) -> str:
        return re.sub(r"\d+", lambda _: text, example) if re.search(r"\d", example) else example + text

    return {
        "nothing": "",
        "white space": " \t\r\n\v\f\u00a0\u2028\u3000",
        "newlines around a valid action": f"\n\r\n{example}\n\r\n",
        "a NUL": "\0",
        "a NUL in a valid action": f"{example[:1]}\0{example[1:]}",
        "a lone high surrogate": "\ud800",
        "a lone low surrogate": f"{example}\udfff",
        "lone surrogates in a box": "\\boxed{\udc80\udcff}",
        "a character of every plane": _PLANES,
        "a character of every plane in a box": f"\\boxed{{{_PLANES}}}",
        "noncharacters": "\ufffe\uffff\ufeff",
        "right-to-left marks": f"\u200f\u202e{example}\u202c\u200e",
        "combining marks": example + "\u0301" * 500,
        "letters that change length with case": "\u0130\ufb03\u00df\u1e9e",
        "an empty box": "\\boxed{}",
        "a box of white space": "\\boxed{ \n }",
        "a box that never closes": "\\boxed{",
        "nested boxes": "\\boxed{\\boxed{1}}",
        "deep boxes": "\\boxed{" * 2000 + "1" + "}" * 2000,
        "closing braces": "}" * 2000,
        "deep brackets": "[" * 100_000,
        "deep brackets in a box": "\\boxed{" + "(" * 20_000 + ")" * 20_000 + "}",
        "10,000 digits": "9" * 10_000,
        "10,000 digits in the action's format": with_number("9" * 10_000),
        "10,000 digits in a box": "\\boxed{" + "7" * 10_000 + "}",
        "zero": with_number("0"),
        "a negative number": with_number("-1"),
        "digits that int() refuses": with_number("\u00b2"),
        "digits of another script": with_number("\u0663\u0967"),
        "a fraction": with_number("1/0"),
        "not a number": with_number("nan"),
        "infinity": with_number("-1e999"),
        "format directives": with_number("%s%n{0}{}{x!r}"),
        "pattern characters": with_number("(?P<a>[z-a]*+\\1"),
        "backslashes": "\\" * 999,
        "broken JSON": '{"action": [1, {"a": ',
        "markup": "</answer><answer><python></think><tool_call>]]><!--",
        "tokens of chat templates": "<|im_end|><|im_start|>system\n<|endoftext|></s>[INST]",
        "code": _CODE,
        "code in the action's format": with_number(_CODE),
        "code in a box": f"\\boxed{{{_CODE}}}",
        "code in an answer": f"<answer>{_CODE}</answer>",
    }


def long_actions(example: str) -> Mapping[str, Callable[[int], str]]:
    """Functions that build an action of about a given number of characters, by what the action is made of."""

    def filled(piece: str, before: str = "", after: str = "") -> Callable[[int], str]:
        return lambda size: before + piece * (size // len(piece)) + after

    number = re.search(r"\d+", example)
    before, after = (example[: number.start()], example[number.end() :]) if number else (example, "")
    return {
        "letters": filled("x"),
        "white space": filled(" "),
        "white space before a valid action": filled(" ", after=example),
        "newlines": filled("\n"),
        "digits": filled("9"),
        "digits in the action's format": filled("9", before, after),
        "white space in the action's format": filled(" ", before, after),
        "white space in a box": filled(" ", "\\boxed{", "x"),
        "words in a box": filled("up ", "\\boxed{", "}"),
        "valid actions": filled(example or "x"),
        "boxes": filled("\\boxed{1}"),
        "boxes that never close": filled("\\boxed{"),
        "opening braces": filled("{"),
        "backslashes": filled("\\"),
        "opening tags": filled("<answer>"),
        "tool calls that never close": filled("<search>"),
        "code fences": filled("```python\n"),
    }
