"""The agent of `python -m gem_openrlhf`, under the name that OpenRLHF looks for in the file."""

from gem_openrlhf._agent import GemAgentExecutor


class AgentExecutor(GemAgentExecutor):
    """Plays the environments that `--gem.env` names."""
