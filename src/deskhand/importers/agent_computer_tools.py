"""What agent_computer says about its tools, as rules of the policy: what it asks about, what it
refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..config.foreign_keys import TOOLS
from ..policy.command_lists import AGENT_COMPUTER
from .notes import ImportNotes
from .settings import ImportedKeys, is_plain

HANDLED = (
    "agent.tools.non_interactive_approval_policy",
    "agent.tools.shell_blocked_commands",
    "agent.tools.shell_allow_absolute_paths",
    "agent.id",
    "agent.name",
    "sessions.directory",
    "lmstudio.base_url",
    "lmstudio.api_key",
    "policy",
)
"""The keys that are looked after here, or by the reader."""
ASKED = ("shell",)
"""What it asks about where `require_approval` is not set (its config.py, ToolsConfig)."""
ASKS = "agent_computer asked before every use of it"
NOBODY = "agent_computer refused it where nobody could be asked"
BLOCKED = "agent_computer refused such commands"


def rules(notes: ImportNotes, raw: Mapping[str, Any], agent: str) -> list[dict[str, Any]]:
    """The rules for this agent: none of them allows anything."""
    about = raw.get("agent")
    given = about.get("tools") if isinstance(about, Mapping) else None
    tools = given if isinstance(given, Mapping) else {}
    if isinstance(about, Mapping) and about.get("name"):
        notes.leave(
            "agent.name",
            "an agent is called by its id here",
            "put how it calls itself into its SOUL.md",
        )
    asked = _names(tools.get("require_approval", list(ASKED)))
    found = [*_blocked(notes, tools, agent)]
    if tools.get("non_interactive_approval_policy", "deny") == "deny":
        found += [_rule("deny", agent, tool, NOBODY, who="job:*") for tool in asked]
    else:
        notes.leave(
            "agent.tools.non_interactive_approval_policy",
            "what nobody can be asked about waits for a person here; nothing approves by itself",
            (
                "to let jobs run a tool unasked, put a rule with verdict allow, the tool and "
                "who job:* into `policy`"
            ),
        )
    if tools.get("shell_allow_absolute_paths"):
        notes.leave(
            "agent.tools.shell_allow_absolute_paths",
            "commands stay in the sandbox, which shows them the workspace alone",
            f"to let them out: deskhand config set agents.{agent}.sandbox false",
        )
    elif "shell_allow_absolute_paths" in tools:
        notes.change(
            "agent.tools.shell_allow_absolute_paths",
            "the sandbox sees to it, whatever a command is called",
        )
    return found + [_rule("ask", agent, tool, ASKS) for tool in asked]


def _blocked(notes: ImportNotes, tools: Mapping[str, Any], agent: str) -> list[dict[str, Any]]:
    """A rule for the commands that its shell refuses by their text."""
    listed = [
        str(each) for each in _names(tools.get("shell_blocked_commands", list(AGENT_COMPUTER)))
    ]
    preset = [each for each in listed if each in AGENT_COMPUTER]
    others = [each for each in listed if each not in preset]
    names = [
        each
        for each in others
        if not each.startswith("@") and not any(blank in each for blank in " \t\n")
    ]
    for each in others:
        if each not in names:
            notes.leave(
                f"agent.tools.shell_blocked_commands: {each}",
                "rules compare names of programs, not texts of commands",
                "put a rule for the program into `policy`: docs/policy.md",
            )
    commands = [*(["@agent-computer"] if preset else []), *names]
    if preset and len(preset) < len(AGENT_COMPUTER):
        notes.change(
            "agent.tools.shell_blocked_commands",
            "the whole list that comes with agent_computer is refused",
        )
    return [_rule("deny", agent, "shell", BLOCKED, commands=commands)] if commands else []


def _rule(verdict: str, agent: str, tool: str, because: str, **more: Any) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "agent": agent,
        "tool": TOOLS.get(tool, tool),
        "because": because,
        **more,
    }


def _names(given: Any) -> list[str]:
    return [str(each) for each in given if str(each).strip()] if isinstance(given, list) else []


def providers(notes: ImportNotes, keys: ImportedKeys, known: Mapping[str, Any]) -> dict[str, Any]:
    """The providers with the address of LM Studio, and its key among the secrets. What the model's
    own block says about its address counts first."""
    found = dict(known)
    given = keys.raw.get("lmstudio")
    lmstudio = given if isinstance(given, Mapping) else {}
    address = str(lmstudio.get("base_url") or "")
    key = str(lmstudio.get("api_key") or "")
    if address and "lmstudio" not in found:
        if is_plain(address):
            found["lmstudio"] = {"base_url": address}
        else:
            notes.leave(
                "the address of lmstudio",
                "there may be a key in it",
                "set providers.lmstudio.base_url yourself",
            )
    if key:
        keys.secrets["LMSTUDIO_API_KEY"] = key
    return found
