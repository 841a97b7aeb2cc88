"""What adapters have in common: framework versions here, and in modules of their own settings, tasks, rows, metrics."""

from gem_core.adapters.versions import installed_version, is_supported, require

__all__ = ["installed_version", "is_supported", "require"]
