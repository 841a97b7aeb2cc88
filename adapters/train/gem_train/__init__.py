"""The code that adapters share: framework versions, settings, rows, metrics and reports."""

from gem_train._lazy import lazy_names
from gem_train.versions import installed_version, is_supported, remedy, require

__all__ = ["installed_version", "is_supported", "lazy_names", "remedy", "require"]
