"""Runs a check, and proves that it came to its end. This text is sent to where the check runs.

File descriptor 3 brings a secret word. It is read and closed before the check begins, and written
behind all that the check has printed once its last line was run. So an interpreter that ends sooner, whatever its exit
code, has proved nothing, and no program that the check starts has the word.
"""

from __future__ import annotations

import os
import sys


def _run(path: str) -> None:
    with open(3, encoding="ascii") as given:
        word = given.read().strip()
    sys.argv[:] = [path]
    names = vars(sys.modules["__main__"])
    names["__file__"] = path
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec", dont_inherit=True), names)
    sys.stdout.flush()
    os.write(1, f"\n{word}\n".encode())


if __name__ == "__main__":
    _run(sys.argv[1])
