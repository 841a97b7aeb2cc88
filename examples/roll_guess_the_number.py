"""Train an agent to guess a number in few turns, with ROLL's own agentic pipeline and one reward per turn.

ROLL is on no package index (`roll` there is another project) and is used from a clone:

    git clone https://github.com/alibaba/ROLL ~/ROLL
    git -C ~/ROLL checkout 8eb27cc2dc34c4d1310b169d9b86d339004d811a
    pip install torch==2.13.0 && pip install torch==2.13.0 -r constraints/roll_requirements.txt -e .
    pip install --no-deps TransferQueue==0.1.6 trl==0.9.6
    export ROLL_HOME=~/ROLL PYTHONPATH=~/ROLL

    python examples/roll_guess_the_number.py                 # a tiny model on a CPU

On a GPU node install what ROLL's requirements_torch2100_vllm.txt lists in their place, and `pip install -e .`:

    python examples/roll_guess_the_number.py examples/roll_guess_the_number_gpu.yaml

Arguments are a yaml and what overrides it: `max_steps=50 gem.env=game:Corridor-v0 +gem.row=turn`.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CPU_YAML = HERE / "roll_guess_the_number.yaml"
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))


def main(arguments: list[str]) -> None:
    given = [argument for argument in arguments if argument.endswith(".yaml")]
    overrides = [argument for argument in arguments if argument not in given]
    if given:
        from gem_roll import compose, train

        train(compose(given[0], overrides))
    else:
        train_on_cpu(overrides)


def train_on_cpu(overrides: list[str]) -> None:
    """With what ROLL needs on a CPU, which is with the tests."""
    sys.path.append(str(HERE.parent / "tests/adapters/roll"))
    from roll_on_cpu import settings

    settings.prepare()
    from gem_roll import compose, train

    config = compose(CPU_YAML, [*settings.overrides(), "pretrain=tiny", *overrides])
    if config.pretrain == "tiny":
        config.pretrain = save_tiny_policy(config.gem)
    with tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        settings.start_ray(folder)
        train(config)


def save_tiny_policy(section: Any) -> str:
    """A model of 100k parameters that knows the words and the action format, but not how to play."""
    import torch
    from omegaconf import OmegaConf

    from gem_roll.settings import GemSettings
    from gem_tiny import tiny_policy

    env = GemSettings.of(OmegaConf.to_container(section)).env
    print(f"Warm start: {WARM_START_STEPS} steps on random valid play, for words and format only.")
    torch.set_num_threads(1)  # a tiny model only loses time to more
    folder = tempfile.mkdtemp(prefix="tiny")
    for part in tiny_policy(env, warm_start_steps=WARM_START_STEPS, seed=0):
        part.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main(sys.argv[1:])
