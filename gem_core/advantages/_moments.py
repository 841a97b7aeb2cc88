"""Mean and standard deviation of numbers on several ranks.

Upstream GEM takes E[x^2] - E[x]^2 in float32, which turns 128 equal rewards of -0.1 into NaN. Here each rank
takes two passes over its own numbers in float64, and the results are merged by the parallel formula of Chan,
Golub and LeVeque (Updating formulae and a pairwise algorithm for computing sample variances, Stanford
STAN-CS-79-773, 1979).
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from functools import reduce

import numpy as np

from gem_core.advantages._ranks import Gather, gather_local
from gem_core.turn_batch import FloatArray

EPSILON = 1e-9
"""Added to a standard deviation before dividing by it; upstream GEM's value."""

CONSTANT_SPREAD = 1e-9
"""Numbers whose range is at most this fraction of the largest magnitude count as equal up to rounding."""


@dataclass(frozen=True)
class Moments:
    """Count, extremes, mean and spread of a set of numbers; zeros for an empty set."""

    count: int
    minimum: float
    maximum: float
    mean: float
    m2: float
    """Sum of squared deviations from the mean."""

    @classmethod
    def of(cls, numbers: FloatArray) -> Moments:
        """The moments of a one-dimensional array, which may be empty."""
        if not numbers.size:
            return cls(0, 0.0, 0.0, 0.0, 0.0)
        mean = float(numbers.mean())
        deviations = numbers - mean
        return cls(numbers.size, float(numbers.min()), float(numbers.max()), mean, float(deviations @ deviations))

    @staticmethod
    def over_ranks(numbers: FloatArray, gather: Gather = gather_local) -> Moments:
        """The moments of every rank's numbers together, the same on all ranks. Calls `gather` once."""
        parts = gather(np.array(astuple(Moments.of(numbers)), dtype=np.float64))
        return reduce(Moments.merge, (Moments(int(part[0]), *part[1:].tolist()) for part in parts))

    def merge(self, other: Moments) -> Moments:
        """The moments of both sets together."""
        if not (self.count and other.count):
            return self if self.count else other
        count = self.count + other.count
        gap = other.mean - self.mean
        return Moments(
            count,
            min(self.minimum, other.minimum),
            max(self.maximum, other.maximum),
            self.mean + gap * other.count / count,
            self.m2 + other.m2 + gap * gap * self.count * other.count / count,
        )

    @property
    def std(self) -> float:
        """The population standard deviation."""
        return math.sqrt(self.m2 / self.count) if self.count else 0.0

    @property
    def constant(self) -> bool:
        """Whether all numbers are equal up to rounding (see `CONSTANT_SPREAD`)."""
        return self.maximum - self.minimum <= CONSTANT_SPREAD * max(abs(self.minimum), abs(self.maximum))

    def deviations(self, numbers: FloatArray) -> FloatArray:
        """Members of the set minus its mean, exactly 0 if the set is constant. Shapes (n,)."""
        return np.zeros_like(numbers) if self.constant else numbers - self.mean

    def standardized(self, numbers: FloatArray) -> FloatArray:
        """The deviations divided by `std` + `EPSILON`. Shapes (n,)."""
        return self.deviations(numbers) / (self.std + EPSILON)
