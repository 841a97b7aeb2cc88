r"""Evaluate a model before and after training it with TRL, on the same tasks.

    python trl_evaluate.py      # a tiny model on a CPU, a few minutes

Each evaluation is a folder, so `gem-core eval compare` can compare them again, and `gem-core eval` adds tasks.
"""

from dataclasses import dataclass
from pathlib import Path

from gem_evaluation import Results, evaluate, load_model
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "tiny"  # path or hub id of a chat model, or smollm2; `tiny` builds one that knows the action format
    env: str = "game:GuessTheNumber-v0-easy"  # trained on and evaluated
    tasks: int = 100  # of the evaluation; training plays others
    repeats: int = 2  # episodes of each task
    episodes: int = 128  # per batch
    updates: int = 60  # of the policy
    learning_rate: float = 1e-3  # about 1e-6 for a real model
    response_tokens: int = 4  # token limit of one response; 512 or more for a real model
    warm_start_steps: int = 800  # steps of next-token prediction on random valid play; only for the tiny model
    seed: int = 0  # of training; the evaluation has a seed of its own
    output: str = "runs/trl_evaluate"  # folder of the evaluations and the trained model


def main(options: Options) -> None:
    output = Path(options.output)
    model, tokenizer = options.model, None
    if model == "tiny":
        from gem_tiny import tiny_policy

        model, tokenizer = tiny_policy(options.env, warm_start_steps=options.warm_start_steps, seed=options.seed)
    args = TurnGRPOConfig(
        options.output,
        env=[options.env],
        per_device_train_batch_size=options.episodes,
        max_steps=options.updates,
        max_completion_length=options.response_tokens,
        learning_rate=options.learning_rate,
        entropy_coef=0.04 if options.model == "tiny" else 0.0,
        save_strategy="no",  # `evaluated` saves the model
        seed=options.seed,
        logging_steps=1,
    )
    trainer = TurnGRPOTrainer(model, args, tokenizer, callbacks=[ProgressCallback(options.env)])
    before = evaluated(trainer, output / "before", options)
    trainer.train()
    after = evaluated(trainer, output / "after", options)
    print(f"success before: {before.together.success}\nsuccess after:  {after.together.success}")


def evaluated(trainer: TurnGRPOTrainer, folder: Path, options: Options) -> Results:
    trainer.save_model(str(folder / "model"))
    # Not vLLM, which would want the memory that training has taken.
    model = load_model(str(folder / "model"), options={"max_tokens": options.response_tokens}, engine="transformers")
    return evaluate(options.env, model, tasks=options.tasks, repeats=options.repeats, output=folder / "evaluation")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
