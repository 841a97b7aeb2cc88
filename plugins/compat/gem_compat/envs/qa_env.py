"""Upstream's `QaEnv`: a question whose answer is a few words."""

from __future__ import annotations

from functools import partial

from gem_compat.envs.registration import make

QaEnv = partial(make, "qa:Dataset")
"""Builds `qa:Dataset`; `dataset_name` is a hub id, a file or a folder."""
