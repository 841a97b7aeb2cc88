"""Vectors of environments in Ray actors; see plugins/ray/README.md."""
