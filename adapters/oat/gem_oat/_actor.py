"""Oat's actor, playing environments."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import vllm  # pyright: ignore[reportMissingImports]
from oat.algorithms.ppo import PPOActor

from gem_core.episode import EpisodeSummary
from gem_oat._args import GemOatArgs
from gem_oat._policy import EnginePolicy
from gem_oat._status import reported
from gem_oat._transitions import batch_items
from gem_train.playing import build_collector
from gem_train.rollout import BatchCollector, RolloutSettings, end_token_ids
from gem_train.settings import Split


class GemActor(PPOActor):
    """Plays a batch of whole episodes for each prompt that Oat's collector sends it."""

    args: GemOatArgs

    @reported
    def init(self, actor_id: int, save_path: str) -> None:
        """Load the engine; environments are built for the first batch.

        Args:
            actor_id: number of the actor in this group.
            save_path: folder of the run.
        """
        super().init(actor_id, save_path)
        args = self.args
        # vLLM adds those of the model's generation configuration.
        ends = [*end_token_ids(self._rollout(args.generate_max_length).template(self.tokenizer), self.tokenizer)]
        self.sampling_params = vllm.SamplingParams(
            temperature=args.temperature,
            top_p=args.top_p,
            top_k=args.top_k,
            max_tokens=args.generate_max_length,
            stop_token_ids=ends,
            logprobs=0,  # only for the sampled token
        )
        self.eval_sampling_params.stop_token_ids = ends
        self._collector: BatchCollector | None = None
        self._engine = threading.Lock()
        self._policy = EnginePolicy(self, self.sampling_params, self._engine)
        self._number = args.group_rank * args.actors_per_group + actor_id  # counted over all groups of machines

    @reported
    def step(
        self,
        prompts: Sequence[str],
        formatted_prompts: Sequence[str] | None = None,
        references: Sequence[str] | None = None,
    ) -> Any:
        """Play an episode for each prompt; the prompts are placeholders.

        Returns:
            A handle to a list of `EpisodeData`, one for each prompt.

        Raises:
            EnvFailure: a failure that must stop the run; see `FailurePolicy`.
            NotFoundError, EnvKwargsError, MissingExtraError, EnvError, TemplateError: as `build_collector`.
        """
        count = len(prompts)
        width = self.args.max_concurrent or count
        if self._collector is None:
            everyone = (self._number, self.args.actors_per_group * self.args.num_groups)
            self._collector = self._build("train", width, self._policy, everyone)
        batch = self._collector.collect_round() if width == count else self._collector.collect_episodes(count)
        return self.ipc_client.serialize_ipc(batch_items(batch, count))

    @reported
    def evaluate(self, count: int) -> Any:
        """Play `count` episodes, the same tasks each time.

        Returns:
            A handle to their `EpisodeSummary` objects.

        Raises:
            EnvFailure, NotFoundError, EnvKwargsError, MissingExtraError, EnvError, TemplateError: as `step`.
        """
        those_asked = (self.actor_id, self.args.actors_per_group)
        policy = EnginePolicy(self, self.eval_sampling_params, self._engine)
        collector = self._build("eval", count, policy, those_asked)
        try:
            batch = collector.collect_round()
        finally:
            collector.close()
        summaries: list[EpisodeSummary] = [episode.summary() for episode in batch.episodes]
        return self.ipc_client.serialize_ipc(summaries)

    def hold(self) -> None:
        """Wait until the engine has answered, and keep it from sampling until `release`. Environments continue."""
        self._engine.acquire()

    def release(self, version: int) -> None:
        """Let the engine sample again, with the weights of this version."""
        self._policy.version = version
        self._engine.release()

    def close(self) -> None:
        """Close the environments. Safe to call twice."""
        if self._collector is not None:
            self._collector.close()
            self._collector = None

    def _build(self, split: Split, width: int, policy: EnginePolicy, shard: tuple[int, int]) -> BatchCollector:
        return build_collector(
            self.args,
            split,
            self.tokenizer,
            self._rollout(policy.response_tokens),
            policy,
            width=width,
            group_size=self.args.group_size if split == "train" else 1,
            shard=shard,
        )

    def _rollout(self, response_tokens: int) -> RolloutSettings:
        limit = self.args.max_model_len or self.llm.llm_engine.model_config.max_model_len
        return self.args.rollout(response_tokens, limit)
