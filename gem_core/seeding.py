"""Seeds derived from names alone, so that an episode can be replayed anywhere."""

from __future__ import annotations

import hashlib
import operator
import secrets

SEED_BITS = 63  # fits a signed 64-bit integer, which every framework and file format can carry


def derive_seed(*path: int | str) -> int:
    """A seed for the given path, for example `derive_seed(run_seed, task_number)`.

    Args:
        path: any mixture of integers and strings; different paths give unrelated seeds.

    Returns:
        An integer in `[0, 2**63)`, the same on every machine, Python version and process.
    """
    # Called for every episode, so a plain integer, the usual case, is handled without a function call.
    text = "/".join([f"int:{part}" if type(part) is int else _name(part) for part in path])
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)


def _name(part: int | str) -> str:
    # Without the doubled slash, ("a/str:b",) and ("a", "b") would be the same path.
    return f"str:{part.replace('/', '//')}" if isinstance(part, str) else f"int:{operator.index(part)}"


def fresh_seed() -> int:
    """A seed from the operating system, for runs without a seed."""
    return secrets.randbits(SEED_BITS)
