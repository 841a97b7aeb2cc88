"""Studies of learning that anyone can run again: declared runs, their results as JSON, and pages written from these.

`python -m recipes.algorithms --help` says how. docs/recipes/index.md explains the parts.
"""
