"""A gem-core environment as an OpenEnv environment."""

from .client import TextEnv
from .models import TextAction, TextObservation

__all__ = ["TextAction", "TextEnv", "TextObservation"]
