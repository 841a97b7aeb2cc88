"""Upstream's `MathEnv`: a question whose answer is a number or an expression."""

from __future__ import annotations

from functools import partial

from gem_compat.envs.registration import make

MathEnv = partial(make, "math:Dataset")
"""Builds `math:Dataset`; `dataset_name` is a hub id, a file or a folder."""
