"""When a vector starts the next episode of an environment whose episode ended."""

from __future__ import annotations

from enum import Enum


class Autoreset(str, Enum):
    """When an ended environment starts its next episode."""

    SAME_STEP = "same_step"
    """In the step that ended it: the observation and info are the next episode's, the reward and flags the ended
    one's, and info keeps what the ended one showed last as `final_observation` and `final_info`."""
    DISABLED = "disabled"
    """When `reset(slots=[...])` says so; stepping an ended environment before that is an error."""
