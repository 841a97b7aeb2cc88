"""What reads the images of environments for the model of a training, and a limit on them."""

from __future__ import annotations

import functools
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any

from gem_core.env import Env, Info, ResetResult, StepResult, Wrapper
from gem_core.errors import EnvError
from gem_core.image import IMAGES, PngImage
from gem_train.rollout import ImageReader

PLACEHOLDER = "image_token_id"
"""Where a model's configuration has the id that stands for an image."""
MIN_LOGIT_BIAS = -100.0
"""Of a logit; vLLM allows no less. An id with it is all but never sampled."""
_RESERVED = ("video_token_id", "vision_start_token_id", "vision_end_token_id")


def image_ids(config: Any) -> tuple[int, frozenset[int]] | None:
    """The id that stands for an image, and the further ids that a model must not say; `None` for a model of text.

    Args:
        config: of the model, a configuration of transformers.
    """
    placeholder = getattr(config, PLACEHOLDER, None)
    if placeholder is None:
        return None
    reserved = (getattr(config, name, None) for name in _RESERVED)
    return placeholder, frozenset(one for one in reserved if one is not None)


def reader_of(config: Any, image_processor: Any) -> ImageReader | None:
    """What reads images for a model; `None` without an image processor, and for a model that reads text only.

    Args:
        config: of the model, a configuration of transformers.
        image_processor: of the model.

    Raises:
        TemplateError: an image processor of another kind than that of Qwen-VL models.
    """
    ids = image_ids(config)
    return None if ids is None or image_processor is None else ImageReader(image_processor, *ids)


def image_processor_of(processor: Any) -> Any:
    """The image processor in a processor of transformers; `None` if it makes no patches as Qwen-VL models read them."""
    found = getattr(processor, "image_processor", None)
    return found if isinstance(getattr(found, "merge_size", None), int) else None


def pil_images(uris: Iterable[str]) -> list[Any]:
    """Images as PIL images, as engines and image processors take them."""
    return [PngImage(uri).as_pil() for uri in uris]


class ImageLimit(Wrapper):
    """Fails an episode that shows more images in a prompt than the engine takes, so that the failure policy decides.

    Args:
        env: the environment to wrap.
        most: number of images that a prompt may show.
        history: number of observations that a prompt shows; `None` for all of the episode. Where a summary replaces
            observations, theirs still count.
        raised: how the number is raised, such as a flag; for the error.
    """

    def __init__(self, env: Env, *, most: int, history: int | None, raised: str) -> None:
        super().__init__(env)
        self.most = most
        self._history = history
        self._raised = raised
        # A partial, because a lambda could not be pickled with an environment.
        self._shown: defaultdict[Any, deque[int]] = defaultdict(functools.partial(deque[int], maxlen=history))

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode.

        Raises:
            EnvError: the first observation shows too many images.
        """
        self._shown.clear()
        observation, info = self.env.reset(seed=seed, **options)
        self._count(info)
        return observation, info

    def step(self, action: str) -> StepResult:
        """Play one turn. The observation after the last one is in no prompt, and may show any number of images.

        Raises:
            EnvError: the next prompt would show too many images.
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not (terminated or truncated):
            self._count(info)
        return observation, reward, terminated, truncated, info

    def _count(self, info: Info) -> None:
        shown = self._shown[info.get("agent")]  # each agent has prompts of its own
        shown.append(len(info.get(IMAGES, ())))
        if sum(shown) > self.most:
            within = "the episode" if self._history is None else f"the last {len(shown)} observations"
            raise EnvError(
                f"a prompt with {within} would show {sum(shown)} images, and {self._raised} allows {self.most}. "
                "Raise it, show fewer observations (`history`), or end episodes earlier"
            )


def bias_against(ids: Iterable[int]) -> dict[int, float]:
    """The `logit_bias` of a request whose response must not have these ids."""
    return dict.fromkeys(sorted(ids), MIN_LOGIT_BIAS)
