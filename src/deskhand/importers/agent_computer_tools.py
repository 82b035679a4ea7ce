"""What agent_computer says about its tools, as rules of the policy: what it asks about, what it
refuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..config.foreign_keys import FOREIGN_TOOL_NAMES
from ..policy.command_lists import AGENT_COMPUTER_TEXTS
from .notes import ImportNotes
from .settings import ImportedKeys, is_free_of_secrets

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
DEFAULT_APPROVAL_TOOLS = ("shell",)
"""What it asks about where `require_approval` is not set (its config.py, ToolsConfig)."""
WHY_ASK = "agent_computer asked before every use of it"
WHY_DENY_UNATTENDED = "agent_computer refused it where nobody could be asked"
WHY_BLOCK = "agent_computer refused such commands"


def make_rules(notes: ImportNotes, raw: Mapping[str, Any], agent: str) -> list[dict[str, Any]]:
    """The rules for this agent: none of them allows anything."""
    about = raw.get("agent")
    given = about.get("tools") if isinstance(about, Mapping) else None
    tools = given if isinstance(given, Mapping) else {}
    if isinstance(about, Mapping) and about.get("name"):
        notes.leave_out(
            "agent.name",
            "agents are named by their ids here",
            "write the name that it uses for itself into its SOUL.md",
        )
    asked = _parse_strings(tools.get("require_approval", list(DEFAULT_APPROVAL_TOOLS)))
    found = [*_blocked_command_rules(notes, tools, agent)]
    if tools.get("non_interactive_approval_policy", "deny") == "deny":
        found += [
            _make_rule("deny", agent, tool, WHY_DENY_UNATTENDED, who="job:*") for tool in asked
        ]
    else:
        notes.leave_out(
            "agent.tools.non_interactive_approval_policy",
            "calls that nobody can approve wait for a person here; nothing is approved "
            "automatically",
            (
                "to let jobs run a tool without approval, add a rule with verdict allow, the "
                "tool and who job:* to `policy`"
            ),
        )
    if tools.get("shell_allow_absolute_paths"):
        notes.leave_out(
            "agent.tools.shell_allow_absolute_paths",
            "commands stay in the sandbox, where they see only the workspace",
            f"to run them outside the sandbox: deskhand config set agents.{agent}.sandbox false",
        )
    elif "shell_allow_absolute_paths" in tools:
        notes.change(
            "agent.tools.shell_allow_absolute_paths",
            "the sandbox ensures it, whatever a command is called",
        )
    return found + [_make_rule("ask", agent, tool, WHY_ASK) for tool in asked]


def _blocked_command_rules(
    notes: ImportNotes, tools: Mapping[str, Any], agent: str
) -> list[dict[str, Any]]:
    """A rule for the commands that its shell refuses by their text."""
    listed = [
        str(each)
        for each in _parse_strings(tools.get("shell_blocked_commands", list(AGENT_COMPUTER_TEXTS)))
    ]
    preset = [each for each in listed if each in AGENT_COMPUTER_TEXTS]
    others = [each for each in listed if each not in preset]
    names = [
        each
        for each in others
        if not each.startswith("@") and not any(blank in each for blank in " \t\n")
    ]
    for each in others:
        if each not in names:
            notes.leave_out(
                f"agent.tools.shell_blocked_commands: {each}",
                "rules compare names of programs, not texts of commands",
                "add a rule for the program to `policy`: docs/policy.md",
            )
    commands = [*(["@agent-computer"] if preset else []), *names]
    if preset and len(preset) < len(AGENT_COMPUTER_TEXTS):
        notes.change(
            "agent.tools.shell_blocked_commands",
            "the whole list that comes with agent_computer is refused",
        )
    return [_make_rule("deny", agent, "shell", WHY_BLOCK, commands=commands)] if commands else []


def _make_rule(verdict: str, agent: str, tool: str, because: str, **more: Any) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "agent": agent,
        "tool": FOREIGN_TOOL_NAMES.get(tool, tool),
        "because": because,
        **more,
    }


def _parse_strings(given: Any) -> list[str]:
    return [str(each) for each in given if str(each).strip()] if isinstance(given, list) else []


def merge_providers(
    notes: ImportNotes, keys: ImportedKeys, known: Mapping[str, Any]
) -> dict[str, Any]:
    """The providers with the address of LM Studio, and its key among the secrets. What the model's
    own block says about its address counts first."""
    found = dict(known)
    given = keys.raw.get("lmstudio")
    lmstudio = given if isinstance(given, Mapping) else {}
    address = str(lmstudio.get("base_url") or "")
    key = str(lmstudio.get("api_key") or "")
    if address and "lmstudio" not in found:
        if is_free_of_secrets(address):
            found["lmstudio"] = {"base_url": address}
        else:
            notes.leave_out(
                "the address of lmstudio",
                "there may be a key in it",
                "set providers.lmstudio.base_url yourself",
            )
    if key:
        keys.secrets["LMSTUDIO_API_KEY"] = key
    return found
