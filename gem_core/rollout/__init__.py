"""Token-exact rollouts: episodes from environments and a policy.

Two drivers share one bookkeeper (`Conversation`): `BatchCollector` asks a policy for a list of prompts at a time,
`EpisodeRunner` runs one coroutine per episode.
"""

from gem_core.episode import Completion, Episode, EpisodeSummary, Run, Source, StopReason, TokenSequence, Turn
from gem_core.rollout.batch import Batch
from gem_core.rollout.builder import BaseEpisodeBuilder, EpisodeBuilder
from gem_core.rollout.collector import BatchCollector
from gem_core.rollout.conversation import Conversation
from gem_core.rollout.group_filter import GroupFilter, Judgement
from gem_core.rollout.metrics import batch_metrics, episode_metrics
from gem_core.rollout.pace import Pace
from gem_core.rollout.pictures import Patches, PicturePrompt, PictureReader, pictures_in
from gem_core.rollout.policy import AsyncPolicy, Policy
from gem_core.rollout.recorder import Recorder, recording
from gem_core.rollout.reporter import Reporter
from gem_core.rollout.runner import BaseEpisodeRunner, EpisodeRunner
from gem_core.rollout.settings import RolloutSettings
from gem_core.rollout.template import ChatTemplate, Tokenizer

__all__ = [
    "AsyncPolicy",
    "BaseEpisodeBuilder",
    "BaseEpisodeRunner",
    "Batch",
    "BatchCollector",
    "ChatTemplate",
    "Completion",
    "Conversation",
    "Episode",
    "EpisodeBuilder",
    "EpisodeRunner",
    "EpisodeSummary",
    "GroupFilter",
    "Judgement",
    "Pace",
    "Patches",
    "PicturePrompt",
    "PictureReader",
    "Policy",
    "Recorder",
    "Reporter",
    "RolloutSettings",
    "Run",
    "Source",
    "StopReason",
    "TokenSequence",
    "Tokenizer",
    "Turn",
    "batch_metrics",
    "episode_metrics",
    "pictures_in",
    "recording",
]
