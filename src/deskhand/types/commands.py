"""The chat commands: one table of name, help and role, from which every surface lists them."""

from __future__ import annotations

import msgspec

from .marked_texts import mark_text


class ChatCommand(msgspec.Struct, frozen=True):
    """`role` is needed to use it; '' for everyone who may talk here. What a command does stands in
    `assembly.chat_commands`, and in `agent.admit_messages` where it `needs_log`. `in_chats`:
    only chat programs offer it, as nothing else can do it."""

    name: str
    help: str
    role: str = ""
    needs_log: bool = False
    in_chats: bool = False


COMMANDS: dict[str, ChatCommand] = {
    command.name: command
    for command in (
        ChatCommand("help", "this list"),
        ChatCommand("stop", "stop what is running; if nothing is, close the conversation"),
        ChatCommand("start", "begin a fresh conversation; what was said stays in the log"),
        ChatCommand("status", "what is going on, and what it has used"),
        ChatCommand("cost", "what this conversation has used, and what is left of the budgets"),
        ChatCommand("undo", "take back the last turn, or as many as you say", needs_log=True),
        ChatCommand("retry", "take back the last turn and send its message again", needs_log=True),
        ChatCommand("document", "send my last answer as a file", needs_log=True, in_chats=True),
        ChatCommand(
            "branch", "go on from here in a second conversation; this one stays", needs_log=True
        ),
        ChatCommand(
            "clean", "send the last message again without what was read before it", needs_log=True
        ),
        ChatCommand("context", "what I still see of this conversation, and how full it is"),
        ChatCommand("compact", "sum up what was said before; /compact WHAT says what matters"),
        ChatCommand("uncompact", "see all again that was summed up or shortened", needs_log=True),
        ChatCommand("agents", "the agents that you may talk to"),
        ChatCommand("jobs", "your jobs, and when they run next; /jobs NAME shows one"),
        ChatCommand("quiet", "/quiet 22:00-07:00: what jobs have to say waits until the morning"),
        ChatCommand("digest", "/digest 08:00 18:00: what jobs have to say comes then, at once"),
        ChatCommand("language", "/language de: in which language I write what I say myself"),
        ChatCommand("memory", "what I remember of you; /memory why, undo, keep or forget NUMBER"),
        ChatCommand("trust", "take what comes from a host as yours, here; /trust off ends it"),
        ChatCommand("model", "which model answers here; /model provider/name chooses one"),
        ChatCommand(
            "handoff", "/handoff CHANNEL: go on with this conversation there; /handoff back returns"
        ),
        ChatCommand("title", "name this conversation"),
        ChatCommand("approval", "on: ask before every tool; off: ask as the rules say"),
        ChatCommand("voice", "on: answers as voice messages too; off: never; auto: when you speak"),
        ChatCommand("teams", "on: work with a team of agents; off: alone"),
        ChatCommand("plan", "on: look and make a plan first; off: go on without one"),
        ChatCommand(
            "deep",
            "/deep REQUEST: plan it, then work on by itself until it is done; /deep on, /deep off",
        ),
        ChatCommand(
            "goal", "/goal TEXT: go on until a judge says that it is reached; /goal off ends that"
        ),
        ChatCommand(
            "skills", "skills that are proposed; /skills show, accept or reject NUMBER", "owner"
        ),
        ChatCommand("restart", "end the service and start it anew", "owner"),
    )
}

WELCOME = mark_text("""I am your assistant on your own machine. I work with files, look things up on the web, set reminders, and \
remember what you tell me. I ask you before I do what cannot be taken back.

Write as you would to a person, for example:
• Remind me tomorrow at 9 to call the bank
• What is the weather in Lisbon this weekend?
• Send me a file, and ask what it says

/help lists all commands, /stop stops what I am doing.""")  # noqa: E501
"""What somebody reads who comes for the first time."""

COMMAND_ALIASES = {"memories": "memory"}
"""What other systems call a command of ours -> ours."""
