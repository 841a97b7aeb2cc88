"""Ends what `gem_core.training.recording.record` began in this process."""

from __future__ import annotations

from gem_core.plugins import manager
from gem_core.training import recording


def end_recording() -> None:
    for plugin in [*manager._hooks.get_plugins()]:
        if isinstance(plugin, recording.RunRecorder):
            manager.unregister(plugin)
            plugin.close()
    recording._recorder.cache_clear()
