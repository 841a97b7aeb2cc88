"""Answers that try to be more than answers, to the environments that are shipped with graders.

None is right. So none may earn a full reward, and, as ever, none may reach out. What is looked for is outside.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from gem_core import Env, make
from gem_grading import close_server
from gem_support.processes import processes_with

IDS = (
    "rg:binary_matrix", "rg:complex_arithmetic", "rg:countdown", "rg:intermediate_integration",
    "rg:n_queens", "rg:number_sorting", "rg:polynomial_multiplication", "rg:puzzle24",
    "rg:simple_integration", "rg:spiral_matrix", "rg:string_insertion", "math:Sample",
)  # fmt: skip
FRAME = "__import__('struct').pack('<Q', 14) + b'{{\"value\": 1.0}}'"
OS = "[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close'][0].__init__.__globals__"
REACHING = {
    "shell": "__import__('os').system('touch {file}')",
    "shell in a sum": "4 + __import__('os').system('touch {file}')",
    "subclasses": OS + "['system']('touch {file}')",
    "builtins of a function": "print.__self__.__import__('os').mkdir('{file}')",
    "open": "open('{file}', 'w').write('x')",
    "path": "__import__('pathlib').Path('{file}').touch()",
    "exec": "exec('import os; os.mkdir(\"{file}\")')",
    "compile": "eval(compile('open(\"{file}\", \"w\")', '', 'eval'))",
    "lambda": "(lambda: open('{file}', 'w'))()",
    "comprehension": "[open('{file}', 'w') for _ in [1]]",
    "generator": "sum(len(str(open('{file}', 'w'))) for _ in '1')",
    "walrus": "[f := open, f('{file}', 'w')][0]",
    "f-string": "f\"{{open('{file}', 'w')}}\"",
    "format": "'{{0.__class__.__base__}}'.format(open('{file}', 'w'))",
    "getattr": "getattr(__import__('o' + 's'), 'mk' + 'dir')('{file}')",
    "base64": "exec(__import__('base64').b64decode('b3Blbigie2ZpbGV9IiwgInciKQ=='))",
    "pickle": "__import__('pickle').loads(b'cos\\nmkdir\\n(S\\'{file}\\'\\ntR.')",
    "sympify": "sympify(\"open('{file}', 'w')\")",
    "lambdify": "lambdify([], \"open('{file}', 'w')\")()",
    "sympy's own preview": "preview(Symbol('x'), viewer='file', filename='{file}')",
    "symbol": "Symbol('x').__class__.__init__.__globals__['__builtins__']['open']('{file}', 'w')",
    "socket": "__import__('socket').create_connection(('127.0.0.1', {port}))",
    "kill": "__import__('os').kill({pid}, 9)",
    "kill parent": "__import__('os').kill(__import__('os').getppid(), 9)",
    "fork": "__import__('os').fork()",
    "ctypes": "__import__('ctypes').CDLL(None).creat(b'{file}', 511)",
    "codec": "__import__('codecs').open('{file}', 'w')",
    "module attribute": "re.sys.modules['os'].mkdir('{file}')",
    "help": "help()",
    "breakpoint": "breakpoint()",
    "input": "input()",
    "exit": "exit()",
    "os._exit": "__import__('os')._exit(0)",
}
FORGING = {
    # The reply, or the scoring.
    "frame": "[__import__('os').write(f, " + FRAME + ") for f in range(4, 9) if f in __import__('os').listdir('/')]",
    "frame to each file": OS + "['write'](5, " + FRAME + ")",
    "frame to 6": "__import__('os').write(6, " + FRAME + ") + __import__('os')._exit(0)",
    "frame to 7": "__import__('os').write(7, " + FRAME + ") + __import__('os')._exit(0)",
    "equal to all": "type('E', (float,), {{'__eq__': lambda *_: True, '__float__': lambda _: 24.0}})(24)",
    "equal text": "type('S', (str,), {{'__eq__': lambda *_: True, '__hash__': lambda _: 0}})()",
    "own truth": "__import__('sys')._getframe(2).f_locals['entry']['answer']",
    "own truth of a caller": "__import__('sys')._getframe(1).f_back.f_back.f_locals.get('entry')['answer']",
    "objects": "[o for o in __import__('gc').get_objects() if isinstance(o, dict) and 'answer' in o][0]['answer']",
    "patched float": "setattr(__import__('builtins'), 'float', lambda _: 1.0)",
    "patched score": "setattr(__import__('gem_reasoning_gym.scoring').scoring, '_score_of', lambda *_: 1.0)",
    "patched json": "setattr(__import__('json').JSONEncoder, 'encode', lambda *_: '{{\"value\": 1.0}}')",
    "code": "__import__('sys')._getframe(3).f_code.replace(co_consts=(1.0,))",
    # Data that is no answer.
    "dunder": "__class__", "name": "entry['answer']", "metadata": "entry[\"metadata\"]", "empty": "()", "none": "None",
    "true": "True", "nan": "nan", "infinity": "inf", "zoo": "zoo", "wildcard": "Wild('x')", "any": "*", "dots": "...",
    "json": "{{\"value\": 1.0}}", "list of lists": "[[[[]]]]", "null": "\\0", "template": "{{{{answer}}}}",
    "deep": "(" * 3000 + "1" + ")" * 3000, "long": "9" * 30000, "tower": "9**9**9**9", "factorial": "99999!!!",
    "repeat": "'x' * 10**12", "recursion": "(lambda f: f(f))(lambda f: f(f))", "not text": "\\ud800\\uffff\\x1b[2J",
}  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def no_server_is_left() -> Iterator[None]:
    yield
    close_server()


@cache
def environment(name: str) -> Env:
    return make(name)


@pytest.mark.parametrize("name", IDS)
def test_no_answer_reaches_out(name: str, tmp_path: Path) -> None:
    _try(REACHING, name, tmp_path)


@pytest.mark.parametrize("name", IDS)
def test_no_answer_is_paid_for_its_code(name: str, tmp_path: Path) -> None:
    _try(FORGING, name, tmp_path)


def _try(attempts: dict[str, str], name: str, tmp_path: Path) -> None:
    env = environment(name)
    paid: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        names = {"file": tmp_path / "touched", "port": listening.getsockname()[1], "pid": os.getpid()}
        for what, attempt in attempts.items():
            env.reset(row=0)
            _, reward, _, _, info = env.step(f"\\boxed{{{attempt.format(**names)}}}")
            if reward >= 1 or info["success"]:
                paid.append(what)
            assert not [*tmp_path.iterdir()], what
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert paid == []
    assert not processes_with(str(tmp_path))
