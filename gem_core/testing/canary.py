"""Imported by nothing. An absurd action holds code that imports it: if it was, an environment evaluated the action."""
