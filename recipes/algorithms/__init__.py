"""Estimators compared on eight environments, as in Figure 4 of GEM (arXiv 2510.01051)."""
