"""Token-exact rollouts: episodes from environments and a policy.

Two drivers share one bookkeeper (`Conversation`): `BatchCollector` asks a policy for a list of prompts at a time,
`EpisodeRunner` runs one coroutine per episode.
"""

from gem_core.episode import Completion, Episode, EpisodeSummary, Run, Source, StopReason, TokenSequence, Turn
from gem_train.rollout._batch import Batch
from gem_train.rollout._budget import RoundBudget
from gem_train.rollout._builder import BaseEpisodeBuilder, EpisodeBuilder
from gem_train.rollout._collector import BatchCollector
from gem_train.rollout._conversation import Conversation
from gem_train.rollout._group_filter import GroupFilter, GroupMetric
from gem_train.rollout._images import ImagePrompt, ImageReader, Patches, images_in, texts_around
from gem_train.rollout._metrics import batch_metrics, episode_metrics
from gem_train.rollout._policy import AsyncPolicy, Policy
from gem_train.rollout._recorder import Recorder, as_utf8, drop_partial_line, encoded, recording
from gem_train.rollout._reporter import MAX_SAMPLES, Reporter
from gem_train.rollout._runner import BaseEpisodeRunner, EpisodeRunner
from gem_train.rollout._secrets import without_secrets
from gem_train.rollout._settings import Cutoff, RolloutSettings
from gem_train.rollout._stalls import Stall, StallDetector, StallWords, stalls
from gem_train.rollout._template import ChatTemplate, Tokenizer, end_token_ids
from gem_train.rollout._thoughts import Thoughts
from gem_train.rollout.records import recorded, restored

__all__ = [
    "MAX_SAMPLES",
    "AsyncPolicy",
    "BaseEpisodeBuilder",
    "BaseEpisodeRunner",
    "Batch",
    "BatchCollector",
    "ChatTemplate",
    "Completion",
    "Conversation",
    "Cutoff",
    "Episode",
    "EpisodeBuilder",
    "EpisodeRunner",
    "EpisodeSummary",
    "GroupFilter",
    "GroupMetric",
    "ImagePrompt",
    "ImageReader",
    "Patches",
    "Policy",
    "Recorder",
    "Reporter",
    "RolloutSettings",
    "RoundBudget",
    "Run",
    "Source",
    "Stall",
    "StallDetector",
    "StallWords",
    "StopReason",
    "Thoughts",
    "TokenSequence",
    "Tokenizer",
    "Turn",
    "as_utf8",
    "batch_metrics",
    "drop_partial_line",
    "encoded",
    "end_token_ids",
    "episode_metrics",
    "images_in",
    "recorded",
    "recording",
    "restored",
    "stalls",
    "texts_around",
    "without_secrets",
]
