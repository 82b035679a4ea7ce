"""Tests of `deskhand.mcp`. A folder `mcp` would stand before the SDK of that name."""
