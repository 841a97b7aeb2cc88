"""What this package adds: one plugin for each tracker, which does nothing unless a run names it in `track`."""

from __future__ import annotations

from gem_trackers._tracking import Tracking

wandb = Tracking("wandb", "gem_trackers.wandb:WandbTracker")
tensorboard = Tracking("tensorboard", "gem_trackers.tensorboard:TensorBoardTracker")
trackio = Tracking("trackio", "gem_trackers.trackio:TrackioTracker")
