"""`GRPOTrainer` with environments in place of prompts, and one advantage per turn."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from datasets import Dataset
from transformers import PrinterCallback
from transformers import ProgressCallback as HuggingFaceProgressCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
from transformers.utils import logging
from trl import GRPOTrainer

from gem_core.advantages import advantages_and_returns
from gem_core.env import Env
from gem_core.errors import AdapterError, AdvantageError, SettingsError
from gem_core.plugins import manager
from gem_core.registry import advantage_spec
from gem_core.vector import share_slots
from gem_train.ahead import SamplingThread
from gem_train.cleanup import clean_up_after_this_process
from gem_train.defaults import acting
from gem_train.metrics import announcement, staleness_metrics
from gem_train.models import model_folder
from gem_train.playing import build_collector, prepare_process
from gem_train.recording import log_exceptions
from gem_train.rollout import Batch, BatchCollector, Episode, ImageReader, Policy, RolloutSettings, batch_metrics
from gem_train.rows import Row
from gem_train.settings import Split
from gem_train.template_checks import check_conversations
from gem_train.turn_table import TurnTable
from gem_trl._ahead import PolicyCopy
from gem_trl._config import TurnGRPOConfig
from gem_trl._ends import stop_at
from gem_trl._images import image_types, reader_of, row_fields, tokenizer_and_processor, without_empty_fields
from gem_trl._policy import TrainerPolicy
from gem_trl._prefixes import KeptPrefixes
from gem_trl._progress import ProgressCallback
from gem_trl._recording import LossRecorder, TrainedBatch
from gem_trl._rows import batch_rows, pad_rows, rollout_output, sampler_table
from gem_trl._scoring import can_score, log_probs
from gem_trl.critic import Critic

logger = logging.get_logger(__name__)

_ROWS = "gem_rows"
"""Column of a batch: the number of each row, so that a row is known after TRL has shuffled them."""

ValueFunction = Callable[[Sequence[Episode]], Sequence[Sequence[float]]]
"""Values of each turn of each episode, for `advantage="gae"` without the critic that is trained beside the policy."""


class TurnGRPOTrainer(GRPOTrainer):
    """Plays environments with the policy and trains it on per-turn advantages, in `GRPOTrainer`'s own loop.

    The trainer uses public interfaces of TRL, with these exceptions: sampling (`TrainerPolicy`), replacing the
    advantages in `_generate_and_score_completions`, because `_compute_loss` accepts one advantage per token,
    `_get_per_token_logps_and_entropies`, for records, corrections and the images of the rows, and the two methods
    that write and read checkpoints, for the critic.

    Each process plays `args.episodes_per_process` episodes for a batch, one per environment, all with the current
    policy unless `args.max_staleness` lets a thread sample ahead. With `loss_type="dr_grpo"` the loss is the sum
    over all sampled tokens, divided by the number of episodes and `max_completion_length`, for either `row`.

    Args:
        model: a model, a path or a hub id, as for `GRPOTrainer`, or a name that a package declares, such as `smollm2`.
        args: the settings.
        processing_class: the tokenizer, or a processor with tokenizer and image processor; by default the model's own.
        image_processor: of a vision-language model, for environments that show images; see docs/images.md.
        wrappers: applied to each environment in this order.
        value_function: gives the values for `advantage="gae"` in place of the trained `Critic`.
        kwargs: `callbacks`, `optimizers`, `peft_config`, `quantization_config` of `GRPOTrainer`.

    Raises:
        SettingsError: settings that cannot work together.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
        TemplateError: the tokenizer has no usable chat template.
    """

    args: TurnGRPOConfig
    model: Any
    processing_class: Any

    def __init__(
        self,
        model: Any,
        args: TurnGRPOConfig,
        processing_class: Any = None,
        *,
        image_processor: Any = None,
        wrappers: Sequence[Callable[[Env], Env]] = (),
        value_function: ValueFunction | None = None,
        **kwargs: Any,
    ) -> None:
        _check_values(args, value_function)
        processing_class, image_processor = tokenizer_and_processor(processing_class, image_processor)
        clean_up_after_this_process()
        prepare_process(args)
        tasks = (args.generation_batch_size or args.episodes_per_process) // args.group_size
        args.check_environments(tasks, f"per_device_train_batch_size={args.per_device_train_batch_size}")
        self._wrappers = tuple(wrappers)
        self._value_function = value_function
        self._critic: Critic | None = None
        self._prefixes = KeptPrefixes()
        self._collectors: dict[str, BatchCollector] = {}
        self._copy: PolicyCopy | None = None
        self._ahead: SamplingThread | None = None
        self._batch = Batch()
        self._rows: list[Row] = []
        self._turns = TurnTable.of([], [], [])
        self._memory: dict[str, Any] = {}
        self._training = True
        self._announced = False
        self._adapter_seconds = 0.0
        self._recorder: LossRecorder | None = None
        self._scored: tuple[torch.Tensor | None, torch.Tensor | None] = (None, None)
        self._shown: dict[str, Any] = {}
        # TRL warns that rollout_func may change. A test checks it here, so the warning is hidden.
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
        super().__init__(
            model=_located(model) if isinstance(model, str) else model,
            reward_funcs=self.episode_return,
            args=args,
            train_dataset=_placeholder_prompts(args.generation_batch_size or 1),
            eval_dataset=_placeholder_prompts(args.eval_episodes),
            processing_class=processing_class,
            rollout_func=self._rollout,
            **kwargs,
        )
        if advantage_spec(args.advantage).needs_values and value_function is None:
            if image_processor is not None:
                raise SettingsError(
                    f"advantage={args.advantage!r} has a critic that sees no images. Pass value_function=..., or use "
                    "an estimator such as 'rebn'."
                )
            self._critic = Critic(self.model, args, self.accelerator, self.eos_token_ids[0])
        if not self._progress_callbacks():
            self.add_callback(ProgressCallback(", ".join(args.train_weights), quiet=not args.report))
        if any(not one.quiet for one in self._progress_callbacks()):
            self.remove_callback(PrinterCallback)
            self.remove_callback(HuggingFaceProgressCallback)
        self._settings = self._rollout_settings()
        self._images = self._image_reader(image_processor)
        self._end_responses()
        if args.eval_strategy != "no":
            self._check_eval_batches()

    # -- public methods of the Hugging Face trainer -----------------------------------------------------------------

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train as `GRPOTrainer.train` does. Environments are closed at the end, also after an error."""
        error: BaseException | None = None
        try:
            return super().train(*args, **kwargs)
        except BaseException as raised:
            error = raised
            self._end_progress()
            raise
        finally:
            self._close("train", error)

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Play `args.eval_episodes` episodes, the same tasks each time. Metrics start with `eval_`.

        Raises:
            SettingsError: the episodes do not fill whole batches.
        """
        self._check_eval_batches()
        self._close("eval")
        try:
            return super().evaluate(*args, **kwargs)
        finally:
            self._close("eval")

    # -- TRL's public interfaces ------------------------------------------------------------------------------------

    def episode_return(
        self, prompts: list[str], log_metric: Callable[[str, float], None], **_: Any
    ) -> list[float | None]:
        """The reward function for TRL's log: the mean return, and all metrics of the batch.

        TRL computes its own advantages from it, which are replaced afterwards.
        """
        metrics = batch_metrics(self._batch)
        if self._training:
            played = [episode.summary() for episode in self._batch.episodes]
            metrics |= staleness_metrics(played, self.state.global_step)
            for one in self._progress_callbacks():
                one.see(played)
        padding = sum(not row.turns for row in self._rows)
        for name, value in {**metrics, "rollout/padding_rows": float(padding)}.items():
            log_metric(name, value)
        returns = [episode.total_reward for episode in self._batch.episodes]
        return [*returns, *[None] * len(prompts)][: len(prompts)]

    def _rollout(self, prompts: list[Any], trainer: GRPOTrainer) -> dict[str, Any]:
        return self.rollout(len(prompts))

    def rollout(self, count: int) -> dict[str, Any]:
        """Play `count` episodes. Returns the value of TRL's `rollout_func`."""
        self._batch = self._take_ahead(count) if self._training and self._runs_ahead else self._play(count)
        started = time.perf_counter()
        self._make_rows(count)
        output = rollout_output(self._rows, with_logprobs=self.use_vllm)
        self._adapter_seconds += time.perf_counter() - started
        return output

    def compute_loss(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """The loss of a micro-batch, whose numbers are recorded if the run is."""
        loss = super().compute_loss(model, inputs, *args, **kwargs)
        scored, self._scored = self._scored, (None, None)
        if self._recorder is not None and _ROWS in inputs:
            with log_exceptions():
                self._recorder.add(inputs[_ROWS], *scored)
        return loss

    # -- overrides of private methods -------------------------------------------------------------------------------

    def _get_per_token_logps_and_entropies(self, model: Any, input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        if self._shown and self._images is not None:
            kwargs |= {**self._shown, "mm_token_type_ids": image_types(self._images, input_ids)}
        found = self._score(model, input_ids, *args, **kwargs)
        if self._recorder is not None:
            self._scored = found[:2]
        return found

    def _score(
        self,
        model: Any,
        ids: torch.Tensor,
        mask: torch.Tensor,
        kept: int,
        batch_size: int | None = None,
        **others: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """As `_get_per_token_logps_and_entropies` of TRL, without what rows have in common being computed for each."""
        needed = {name for name, value in others.items() if value is not None and value is not False}
        if needed <= {"compute_entropy"} and self._scores_once:
            size = batch_size or len(ids)
            with self.accelerator.autocast():
                parts = [log_probs(model, *pair, kept) for pair in zip(ids.split(size), mask.split(size), strict=True)]
            scored = [one for one in parts if one is not None]
            if len(scored) == len(parts):
                table = torch.cat([logps for logps, _ in scored])
                entropies = [one for _, one in scored if one is not None]
                return table, torch.cat(entropies) if others.get("compute_entropy") else None, None
        return super()._get_per_token_logps_and_entropies(model, ids, mask, kept, batch_size, **others)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        super()._save_checkpoint(model, trial)
        if self._critic is not None and self.args.should_save:
            self._critic.save(
                Path(self._get_output_dir(trial=trial)) / f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
            )

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        super()._load_optimizer_and_scheduler(checkpoint)
        if self._critic is not None and checkpoint is not None:
            self._critic.load(checkpoint)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._training = self.model.training  # some of TRL's engines change it during sampling
        output = super()._generate_and_score_completions(inputs)
        self._add_images(output)
        completions = output["completion_ids"]
        if not self._training:
            # An evaluation needs no advantages, and its episodes form no groups.
            output["advantages"] = torch.zeros(completions.shape, device=completions.device)
            return output
        started = time.perf_counter()
        batch = self._turns.batch(values=self._values())
        advantages, returns, metrics = advantages_and_returns(
            self.args.advantage,
            batch,
            gamma=self.args.gamma,
            lam=self.args.lam,
            gather=self._gather,
            memory=self._memory,
        )
        [table] = self._turns.spread(advantages, [completions.shape])
        if self.loss_type == "dr_grpo":
            # The loss divides by rows. This factor makes it divide by episodes, whatever the turns and padding.
            table *= len(self._rows) / len(inputs)
        output["advantages"] = torch.from_numpy(self._corrected(output, table)).to(completions.device)
        if self._critic is not None:
            metrics |= self._critic.learn(self._rows, returns)
        self._begin_record(output, torch.from_numpy(table), returns)
        self._adapter_seconds += time.perf_counter() - started
        self._log_advantages({**metrics, "time/adapter": self._adapter_seconds})
        return output

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _play(self, count: int) -> Batch:
        """Play `count` episodes with the present weights."""
        started = time.perf_counter()
        mode: Split = "train" if self._training else "eval"
        # A model that reads images counts positions in its own way.
        prefixes = self._prefixes if self.args.keep_prefixes and self._images is None else None
        policy = TrainerPolicy(self, self.args.response_tokens, self._images, prefixes)
        if mode not in self._collectors:
            self._collectors[mode] = self._new_collector(mode, count, policy, self.args.min_generation_batch)
        try:
            batch = self._collectors[mode].collect_round()
            policy.wait_for_others()
        finally:
            self._prefixes.clear()  # the weights change, and training needs the memory
        self._adapter_seconds = time.perf_counter() - started - batch.policy_seconds - batch.env_seconds
        return batch

    @property
    def _scores_once(self) -> bool:
        args = self.args
        if not args.keep_prefixes or args.gradient_checkpointing or self._images is not None:
            return False
        alone = self.accelerator.num_processes == 1 and not (args.deepspeed or args.fsdp)
        return alone and can_score(self.accelerator.unwrap_model(self.model))

    @property
    def _runs_ahead(self) -> bool:
        return self.args.max_staleness > 0

    def _take_ahead(self, count: int) -> Batch:
        """The next batch of `count` episodes from the thread that samples ahead."""
        started = time.perf_counter()
        if self._ahead is None or self._copy is None:
            self._copy = PolicyCopy(self, self.args.response_tokens)
            # Which prompts share a batch depends on timing in any case, so nobody waits for the slowest environment.
            smallest = self.args.min_generation_batch or 1
            collector = self._collectors["train"] = self._new_collector("train", count, self._copy, smallest)
            self._ahead = SamplingThread(collector, self.args.batches_ahead, self._rounds_left())
        self._copy.publish()
        self._adapter_seconds = time.perf_counter() - started
        waiting = time.perf_counter()
        batch = self._ahead.take()
        self._metrics["train"]["time/waiting"].append(time.perf_counter() - waiting)
        return batch

    def _rounds_left(self) -> int:
        """At least the number of batches that the rest of the training needs."""
        args = self.args
        steps = (self.state.max_steps - self.state.global_step) * args.gradient_accumulation_steps
        return -(-steps // ((args.steps_per_generation or 1) * self.num_iterations))

    def _corrected(self, output: dict[str, Any], table: np.ndarray) -> np.ndarray:
        """Advantages (rows, tokens) times the weights of the correction, which the loss is proportional to."""
        correction = self.args.off_policy
        if correction is None:
            return table
        sampler = sampler_table(self._rows, table.shape)
        [weights], metrics = correction.weights(self._turns, [self._trainer_logprobs(output)], [sampler], self._gather)
        self._log_metrics(metrics)
        return table * weights

    def _trainer_logprobs(self, output: dict[str, Any]) -> np.ndarray:
        """The log-probabilities (rows, tokens) of the weights before the update."""
        found = output.get("old_per_token_logps")
        if found is None:
            ids = torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1)
            mask = torch.cat([output["prompt_mask"], output["completion_mask"]], dim=1)
            width, size = output["completion_ids"].shape[1], self.args.per_device_train_batch_size
            with torch.no_grad():
                found = super()._get_per_token_logps_and_entropies(self.model, ids, mask, width, batch_size=size)[0]
        return found.double().cpu().numpy()

    def _new_collector(self, mode: Split, count: int, policy: Policy, min_batch: int | None) -> BatchCollector:
        args, rank = self.args, self.accelerator.process_index
        train = mode == "train"
        if train and self.state.global_step % args.whole_batches:
            raise SettingsError(
                f"the checkpoint of update {self.state.global_step} is between the updates of a batch, and has nothing "
                f"of the rest. Resume from a checkpoint of a multiple of {args.whole_batches} updates."
            )
        group_size = args.group_size if train else 1
        self._check_shares(mode, count // group_size)
        return build_collector(
            args,
            mode,
            self.processing_class,
            self._settings,
            policy,
            width=count,
            group_size=group_size,
            shard=(rank, self.accelerator.num_processes),
            # A resumed run plays new tasks instead of repeating the tasks before the checkpoint.
            first_episode=self._rounds_played() if train else 0,
            min_batch=min_batch,
            wrappers=self._wrappers,
            images=self._images,
        )

    def _end_responses(self) -> None:
        """Have the engine end responses where the chat template ends turns; what cannot work fails before a batch."""
        template = self._settings.template(self.processing_class, self._images)
        stop_at(self, [*template.ends, *self.eos_token_ids])
        limits = f"max_completion_length={self.args.max_completion_length}"
        check_conversations(self.args, template, self._settings, self.eos_token_ids, limits, self._wrappers)

    def _image_reader(self, image_processor: Any) -> ImageReader | None:
        """What reads images for the model. The model cannot say what stands for an image, in any engine."""
        reader = reader_of(self.accelerator.unwrap_model(self.model).config, image_processor)
        if reader is None:
            self.args.check_images(
                "and no image processor was given. Use a vision-language model, and "
                "TurnGRPOTrainer(image_processor=...)"
            )
            return None
        if self.use_vllm or self.args.use_transformers_continuous_batching:
            raise SettingsError(
                "images need sampling by transformers' generate: vLLM and continuous batching would render prompts "
                "anew. Leave use_vllm and use_transformers_continuous_batching out"
            )
        if self._runs_ahead:
            raise SettingsError(
                f"max_staleness={self.args.max_staleness}: the thread that samples ahead shows its copy of the model "
                "no images. Leave max_staleness out"
            )
        self.generation_config.suppress_tokens = sorted(reader.reserved)
        models: list[Any] = [self.model, self.ref_model]
        for model in filter(None, models):
            model.register_forward_pre_hook(without_empty_fields, with_kwargs=True)
        return reader

    def _add_images(self, output: dict[str, Any]) -> None:
        """Give the loss what the rows show. From here on, it brings its images itself."""
        shown, self._shown = self._shown, {}
        if shown and self._images is not None:
            ids = torch.cat([output["prompt_ids"], output["completion_ids"]], dim=1)
            output |= {**shown, "mm_token_type_ids": image_types(self._images, ids)}

    def _rounds_played(self) -> int:
        """Number of batches of episodes in the updates so far."""
        args = self.args
        updates = self.state.global_step * args.gradient_accumulation_steps
        return -(-updates // ((args.steps_per_generation or 1) * self.num_iterations))

    def _check_shares(self, mode: Split, tasks: int) -> None:
        """Raise `SettingsError` unless every environment gets a task of a batch; warn about unequal shares."""
        weights, everyone = self.args.weights(mode), tasks * self.accelerator.num_processes
        try:
            share_slots(weights, everyone)
        except ValueError as error:
            raise SettingsError(
                f"{error} A batch has {everyone} tasks: raise "
                "per_device_train_batch_size, or per_device_eval_batch_size for an evaluation."
            ) from error
        if len(set(weights.values())) == 1 and everyone % len(weights):
            logger.warning(f"{len(weights)} environments share the {everyone} tasks of a batch unequally")

    def _rollout_settings(self) -> RolloutSettings:
        limits = f"max_completion_length={self.args.max_completion_length}"
        return self.args.rollout(self.args.response_tokens, self._context_limit(), limits=limits)

    def _check_eval_batches(self) -> None:
        per_batch = self.args.per_device_eval_batch_size * self.accelerator.num_processes
        if self.args.eval_episodes % per_batch:
            raise SettingsError(
                f"eval_episodes={self.args.eval_episodes} is not a multiple of the global evaluation batch of "
                f"{per_batch} (per_device_eval_batch_size x processes). Change one of them."
            )

    def _context_limit(self) -> int | None:
        config = self.accelerator.unwrap_model(self.model).config.get_text_config()
        limits = [
            self.args.max_context_tokens,
            self.args.vllm_max_model_length if self.use_vllm else None,
            getattr(config, "max_position_embeddings", None),
        ]
        return min((limit for limit in limits if limit), default=None)

    def _make_rows(self, episodes: int) -> None:
        """Make the rows of the batch: the same number on each process, without a rest for `split_tensor_dict`."""
        args, alone = self.args, self.accelerator.num_processes == 1
        rows, self._turns = batch_rows(self._batch.episodes, args.row)
        counting = [name for name in ("beta", "log_completions") if getattr(args, name)]
        if counting and any(episode.agent for episode in self._batch.episodes):
            raise AdapterError(
                f"{counting[0]}={getattr(args, counting[0])!r} counts rows, and a match has a row for each agent. "
                "Leave the setting out."
            )
        if counting and len(rows) > sum(bool(episode.turns) for episode in self._batch.episodes):
            raise AdapterError(
                f"{counting[0]}={getattr(args, counting[0])!r} counts rows, and an episode has several rows here, "
                "because its list of tools changed, a summary replaced its turns or a thought was dropped. Leave the "
                "setting out, or keep the list of tools constant and leave compaction and thoughts='drop' out."
            )
        most = len(rows) if alone else max(gather_object([len(rows)]))
        parts = (args.steps_per_generation or 1) if self._training else 1
        count = math.ceil(max(most, episodes) / parts) * parts
        self._rows = pad_rows(rows, count, self.eos_token_ids[0])
        if self._images is not None:
            self._shown = row_fields(self._images, self._rows, self.accelerator.device)

    def _values(self) -> np.ndarray | None:
        if self._critic is not None:
            return self._critic.values(self._rows)
        if self._value_function is None:
            return None
        episodes = self._batch.episodes
        values = self._value_function(episodes)
        if [len(one) for one in values] != [len(episode.turns) for episode in episodes]:
            raise AdvantageError("value_function must return one value for each turn of each episode")
        return np.array([value for one in values for value in one], dtype=np.float64)

    def _gather(self, array: np.ndarray) -> list[np.ndarray]:
        return [array] if self.accelerator.num_processes == 1 else gather_object([array])

    def _log_advantages(self, metrics: dict[str, float]) -> None:
        self._log_metrics(metrics)
        if not self._announced and self.accelerator.is_main_process:
            self._announced = True
            episodes = len(self._batch.episodes) * self.accelerator.num_processes
            whole = {**metrics, "rollout/episodes": float(episodes)}
            shown = acting("gem_trl", functools.partial(getattr, self.args))
            logger.warning(announcement(self.args.advantage, self.args.gamma, self.args.row, whole, shown))

    def _log_metrics(self, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self._metrics["train"][name].append(value)

    def _begin_record(self, output: dict[str, Any], advantages: torch.Tensor, returns: np.ndarray) -> None:
        """Prepare to record what the loss makes of the batch, if somebody wants to know."""
        if not manager.listens("gem_update"):
            return
        if self._recorder is None:
            self._recorder = LossRecorder(self.accelerator.process_index, self.accelerator.num_processes)
            self.add_callback(self._recorder)
        output[_ROWS] = torch.arange(len(advantages), device=output["advantages"].device)
        numbers: Any = self._turns.names
        episodes = [self._batch.episodes[number].id for number in numbers]
        others = [episode.id for episode in self._batch.episodes if not episode.turns]
        self._recorder.begin(TrainedBatch(self._turns, episodes, others, advantages, returns))

    def _end_progress(self) -> None:
        # The Hugging Face trainer ends its callbacks only after a whole run, but an interrupted run needs a curve, too.
        for callback in self._progress_callbacks():
            callback.on_train_end(self.args, self.state, self.control)

    def _progress_callbacks(self) -> list[ProgressCallback]:
        return [one for one in self.callback_handler.callbacks if isinstance(one, ProgressCallback)]

    def _close(self, mode: str, error: BaseException | None = None) -> None:
        if mode == "train" and self._ahead is not None:
            self._ahead.close()
            self._ahead = self._copy = None
        collector = self._collectors.pop(mode, None)
        if collector is not None:
            collector.close(error)


def _placeholder_prompts(count: int) -> Dataset:
    # TRL requires a data set, but environments write the prompts.
    return Dataset.from_dict({"prompt": [""] * count})


def _located(model: str) -> str:
    """The folder of a model, absolute because adapters name it in their files; or an id of the hub."""
    folder = Path(model_folder(model))
    return str(folder.absolute()) if folder.is_dir() else model


def _check_values(args: TurnGRPOConfig, value_function: ValueFunction | None) -> None:
    needed = advantage_spec(args.advantage).needs_values
    if value_function is not None and not needed:
        raise SettingsError(f"advantage={args.advantage!r} does not use values; leave value_function out")
    if args.critic_learning_rate is not None and (not needed or value_function is not None):
        raise SettingsError(
            f"critic_learning_rate={args.critic_learning_rate} has no effect, because this run trains no critic. "
            "Leave it out, or use advantage='gae' without a value_function."
        )
