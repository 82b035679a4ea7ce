-- The tools of MCP servers (mcp/) as they were when a person accepted them. `accepted` is the definition that holds, NULL
-- where nobody has accepted one; `found` is what the server says now, where that is another one: the tool rests then.
-- Both are the JSON of `mcp.definitions.ToolDefinition`.
CREATE TABLE mcp_tool(
  server TEXT NOT NULL,
  name TEXT NOT NULL,
  accepted BLOB,
  found BLOB,
  at REAL NOT NULL,
  PRIMARY KEY(server, name)
) STRICT, WITHOUT ROWID;
