"""The commands `list`, `play` and `doctor` of `gem-core`; see plugins/commands/README.md."""
