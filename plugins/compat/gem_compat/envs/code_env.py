"""Upstream's `CodeEnv`: a problem whose answer is a program."""

from __future__ import annotations

from functools import partial

from gem_compat.envs.registration import make

CodeEnv = partial(make, "code:Dataset")
"""Builds `code:Dataset`; `dataset_name` is a hub id, a file or a folder."""
