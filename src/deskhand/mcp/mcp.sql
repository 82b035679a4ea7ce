-- mcp_tools: as last seen, of all servers --
SELECT server, name, accepted, found FROM mcp_tool ORDER BY server, name

-- mcp_tool_accept: this definition holds from now on --
INSERT INTO mcp_tool(server, name, accepted, found, at) VALUES(?, ?, ?, NULL, ?)
ON CONFLICT(server, name) DO UPDATE SET accepted = excluded.accepted, found = NULL, at = excluded.at

-- mcp_tool_found: the server says something else than what was accepted, or NULL: the same again --
INSERT INTO mcp_tool(server, name, accepted, found, at) VALUES(?, ?, NULL, ?, ?)
ON CONFLICT(server, name) DO UPDATE SET found = excluded.found, at = excluded.at

-- mcp_tool_forget: a server that is there no more --
DELETE FROM mcp_tool WHERE server = ?

-- mcp_tool_drop: a tool that nobody had accepted, and that the server has no more --
DELETE FROM mcp_tool WHERE server = ? AND name = ? AND accepted IS NULL
