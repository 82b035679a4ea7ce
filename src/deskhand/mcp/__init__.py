"""MCP servers: programs and services that bring tools of their own."""
