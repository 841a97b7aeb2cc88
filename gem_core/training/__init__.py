"""What adapters have in common: framework versions here, and in modules of their own settings, tasks, rows, metrics."""

from gem_core.training.lazy import lazy_names
from gem_core.training.versions import installed_version, is_supported, remedy, require

__all__ = ["installed_version", "is_supported", "lazy_names", "remedy", "require"]
