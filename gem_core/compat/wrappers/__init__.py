"""Upstream's wrappers."""
