"""Evaluation: how good is this model, with an interval, on any endpoint.

    from gem_evaluation import evaluate, load_model

    results = evaluate("game:GuessTheNumber-v0-easy", load_model("random"), tasks=50, repeats=4)
    print(results["game:GuessTheNumber-v0-easy"].success)

`evaluate_async` is the same in an event loop, and `read_saved` reads what an earlier evaluation left.
"""

from gem_evaluation._conversation import Message, Prompt, Reasoning, Reply, ToolCall, Usage
from gem_evaluation._errors import EvaluationError, ModelError, ModelSetupError
from gem_evaluation._evaluation import evaluate, evaluate_async
from gem_evaluation._models import FunctionModel, Model
from gem_evaluation._naming import load_model
from gem_evaluation._settings import Entry
from gem_evaluation._statistics import Estimate, success_rate
from gem_evaluation.results import Results, Summary, read_saved

__all__ = [
    "Entry",
    "Estimate",
    "EvaluationError",
    "FunctionModel",
    "Message",
    "Model",
    "ModelError",
    "ModelSetupError",
    "Prompt",
    "Reasoning",
    "Reply",
    "Results",
    "Summary",
    "ToolCall",
    "Usage",
    "evaluate",
    "evaluate_async",
    "load_model",
    "read_saved",
    "success_rate",
]
