"""Upstream's helpers."""
