"""Reinforcement learning with and without a tool, as in Table 1 of GEM (arXiv 2510.01051), in small."""
