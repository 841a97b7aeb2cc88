"""Data sets to evaluate on: ids only, the classes are those of the other plugins."""
