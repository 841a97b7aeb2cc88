"""How the discount decides how fast a number is found, as in Figure 5a of GEM (arXiv 2510.01051)."""
