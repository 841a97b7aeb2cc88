"""Mazes in words, with ids `maze:<Name>-v<N>-<variant>`."""
