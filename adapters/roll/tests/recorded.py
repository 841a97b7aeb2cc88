"""Values of ROLL at commit 8eb27cc2, recorded for tests without ROLL; `test_contract.py` compares them with ROLL."""

from __future__ import annotations

LENGTH = 64
"""ROLL's `sequence_length` at the time of recording."""

TENSORS = {
    "input_ids": ("torch.int64", LENGTH),
    "attention_mask": ("torch.int64", LENGTH),
    "position_ids": ("torch.int64", LENGTH),
    "response_mask": ("torch.bool", LENGTH),
    "prompt_mask": ("torch.bool", LENGTH),
    "scores": ("torch.float32", LENGTH),
    "infer_logprobs": ("torch.float32", LENGTH - 1),
}
"""Tensors in the rows of `StepEnvManager`: data type and width."""

COLUMNS = {"episode_scores", "step_scores", "tags", "env_ids", "group_ids", "state_hash", "step"}
"""The other columns; `state_hash` is for GiGPO; `traj_id` and `traj_group_id` come from the loop."""

ESTIMATORS = ("gae", "reinforce", "grpo", "gigpo", "step_reinforce", "agentic_reinforce")

AGGREGATIONS = ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean", "seq-mean-token-sum-norm")

DEFAULTS = {
    "loss_agg_mode": "seq-mean-token-mean",
    "whiten_advantages": False,
    "gamma": 1,
    "step_reward_gamma": 0.95,
    "batch_adjust_mode": "copy",
    "init_kl_coef": 0.2,
    "adv_estimator": "gae",
    "add_token_level_kl": False,
    "advantage_clip": None,
    "reward_clip": None,
    "critic_warmup": 0,
    "transfer_backend": None,
    "rollout_mock": None,
    "eval_steps": 10,
    "ppo_epochs": 1,
    "use_pg_clip_range": False,
    "use_kl_loss": False,
    "kl_loss_coef": 0,
    "async_generation_ratio": 0,
    "force_disable_old_logprobs_recompute": False,
}
"""Defaults of `AgenticConfig`."""

GENERATING = {"temperature": 0.95, "top_p": 0.7, "top_k": 50, "num_beams": 1, "repetition_penalty": 1.0, "logprobs": 0}
"""Defaults of generation settings."""
