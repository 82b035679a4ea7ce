"""Tools from Python files in a workspace. A file imports what it needs from here."""

from .inside.api import Tool, ToolError, ToolResult, registry, tool

__all__ = ["Tool", "ToolError", "ToolResult", "registry", "tool"]
