"""Tasks on a database of PostgreSQL, which the policy changes through a published MCP server; ids `postgres:<Name>`."""
