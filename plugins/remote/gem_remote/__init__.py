"""Environments over WebSockets: `gem-core serve`, and `remote:` ids that play what it serves."""
