"""Names of models: what an installed package makes or keeps on this machine goes by a short name.

    [project.entry-points."gem_core.models"]
    smollm2 = "gem_smollm2:smollm2_folder"

The value is a function without arguments that returns a folder as `save_pretrained` writes it.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from gem_core.errors import DuplicateIdError, PluginLoadError, convert_errors, located

GROUP = "gem_core.models"


def model_folder(name: str) -> str:
    """The folder of a model that a package declares; any other name as it is, such as a path or a hub id.

    A folder of that name in the working directory comes first. The first call may take a minute and space on the disk.

    Raises:
        MissingExtraError: the package needs an extra.
        PluginLoadError: the package failed to make the folder.
        DuplicateIdError: two packages declare the name.
        GemError: of the package, for example because its weights cannot be had.
    """
    if Path(name).is_dir():
        return name
    declared = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if len(declared) > 1:
        packages = " and ".join(sorted(entry.dist.name if entry.dist else entry.value for entry in declared))
        raise DuplicateIdError(f"the model {name!r} is declared by {packages}. Next: uninstall one, or give its folder")
    return _made_by(declared[0]) if declared else name


def model_names() -> list[str]:
    """The names that installed packages declare."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def _made_by(entry: EntryPoint) -> str:
    failed = f"the model {entry.name!r} ({entry.value}) failed"
    with convert_errors(lambda error: PluginLoadError(f"{failed}{located(error)}")):
        return str(entry.load()())
