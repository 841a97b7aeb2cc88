"""Tasks for a terminal, each in a root of its own: our own, and folders of terminal-bench and Harbor."""
