"""Upstream's environments: by id with `make`, and as functions with the names of its classes."""
