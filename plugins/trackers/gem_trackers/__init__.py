"""Metrics and sample episodes in Weights & Biases, TensorBoard and trackio; see plugins/trackers/README.md."""
