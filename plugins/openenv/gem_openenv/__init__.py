"""OpenEnv, both ways: `openenv:` ids play any OpenEnv server, `gem-core export openenv` makes one of an id."""
