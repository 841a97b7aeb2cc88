"""A tool that runs Python programs in a sandbox."""
