"""Matches between agents with ids `match:<Name>-v<N>`."""
