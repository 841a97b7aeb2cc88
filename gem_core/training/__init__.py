"""The code that adapters share: framework versions, settings, rows, metrics and reports."""

from gem_core.training.lazy import lazy_names
from gem_core.training.versions import installed_version, is_supported, remedy, require

__all__ = ["installed_version", "is_supported", "lazy_names", "remedy", "require"]
