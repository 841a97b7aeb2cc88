"""Upstream's tools."""
