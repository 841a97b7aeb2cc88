"""Upstream's vectors."""
