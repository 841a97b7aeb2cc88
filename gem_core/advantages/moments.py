"""Mean and standard deviation of numbers that are spread over ranks.

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

from gem_core.advantages.ranks import FloatArray, Gather, gather_local

EPSILON = 1e-9
"""Added to a standard deviation before dividing by it; upstream GEM's value."""

CONSTANT_SPREAD = 1e-9
"""Numbers whose range is at most this fraction of the largest magnitude count as equal up to rounding."""


@dataclass(frozen=True)
class Moments:
    """Count, extremes, mean and spread of a set of numbers.

    The mean is kept as its height above the smallest number, so that a large offset common to all numbers
    costs no digits. The spread is kept as the root of Chan's M2, so that numbers too large or too small to
    square still work.

    Args:
        count: how many numbers.
        minimum: the smallest, 0 if there are none.
        maximum: the largest, 0 if there are none.
        height: mean minus `minimum`.
        norm: square root of M2, the sum of squared deviations from the mean.
    """

    count: int
    minimum: float
    maximum: float
    height: float
    norm: float

    @classmethod
    def of(cls, numbers: FloatArray) -> Moments:
        """The moments of a one-dimensional array, which may be empty."""
        if not numbers.size:
            return cls(0, 0.0, 0.0, 0.0, 0.0)
        minimum = float(numbers.min())
        heights = numbers - minimum
        height = float(heights.mean())
        norm = math.hypot(*(heights - height).tolist())  # hypot scales before it squares
        return cls(numbers.size, minimum, float(numbers.max()), height, norm)

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
        minimum = min(self.minimum, other.minimum)
        height = self.height + (self.minimum - minimum)
        gap = other.height + (other.minimum - minimum) - height
        return Moments(
            count,
            minimum,
            max(self.maximum, other.maximum),
            height + gap * other.count / count,
            math.hypot(self.norm, other.norm, gap * math.sqrt(self.count * other.count / count)),
        )

    @property
    def mean(self) -> float:
        """The arithmetic mean, 0 if there are no numbers."""
        return self.minimum + self.height

    @property
    def std(self) -> float:
        """The population standard deviation, 0 if there are no numbers."""
        return self.norm / math.sqrt(self.count) if self.count else 0.0

    @property
    def constant(self) -> bool:
        """Whether all numbers are equal up to rounding (see `CONSTANT_SPREAD`)."""
        return self.maximum - self.minimum <= CONSTANT_SPREAD * max(abs(self.minimum), abs(self.maximum))

    def deviations(self, numbers: FloatArray) -> FloatArray:
        """Members of the set minus its mean, exact zeros if the set is constant. Shapes (n,)."""
        if self.constant:
            return np.zeros_like(numbers)
        return (numbers - self.minimum) - self.height

    def standardized(self, numbers: FloatArray) -> FloatArray:
        """Their deviations divided by `std` + `EPSILON`. Shapes (n,)."""
        return self.deviations(numbers) / (self.std + EPSILON)
