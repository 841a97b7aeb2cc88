"""What can go wrong in an evaluation."""

from __future__ import annotations

from gem_core.errors import GemError


class EvaluationError(GemError):
    """An evaluation cannot start, go on or be read."""


class ModelError(GemError):
    """A model gave no response to a prompt. The episode has failed and can be played again."""


class ModelSetupError(EvaluationError):
    """No request to this model can succeed: no key, a wrong URL, an unknown model."""
