"""A published environment of verifiers, as its modules on the hub load it."""

import verifiers as vf
from verifiers.envs.integrations.reasoninggym_env import ReasoningGymEnv


def load_environment(
    gym: str = "leg_counting", num_train_examples: int = 8, num_eval_examples: int = 4
) -> vf.Environment:
    return ReasoningGymEnv(gym=gym, num_train_examples=num_train_examples, num_eval_examples=num_eval_examples)
