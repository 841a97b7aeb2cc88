"""Metrics and sample episodes in Weights & Biases, TensorBoard and trackio; see docs/trackers.md."""
