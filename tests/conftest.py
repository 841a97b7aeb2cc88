"""Shared by all tests."""

from hypothesis import settings

# A busy machine makes no test wrong.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
