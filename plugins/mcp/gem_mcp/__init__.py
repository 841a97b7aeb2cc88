"""Tools of MCP servers (Model Context Protocol), for the policy of any environment."""
