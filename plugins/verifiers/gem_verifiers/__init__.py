"""Environments of verifiers: installed modules with a `load_environment`, played here turn by turn."""
