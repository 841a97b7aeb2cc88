"""When a vector starts the next episode of an environment whose episode ended."""

from __future__ import annotations

from enum import Enum


class Autoreset(str, Enum):
    """When an ended environment starts its next episode."""

    SAME_STEP = "same_step"
    """In the step that ended it: the observation and info are the next episode's, the reward and flags the ended
    one's, and info keeps what the ended one showed last as `final_observation` and `final_info`."""
    NEXT_STEP = "next_step"
    """In the step after: that step's action is ignored, its reward is 0 and its flags are false."""
    DISABLED = "disabled"
    """When `reset(indices=[...])` says so; stepping an ended environment before that is an error."""
