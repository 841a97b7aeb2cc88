"""`gem-core new`: a complete, tested distribution to start from."""
