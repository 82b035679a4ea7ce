"""What a small model is told: one prompt with the tools, and two that ask for a single word. Byte-stable, to be cached.

The words were chosen by measurement: a tool's word must not be an everyday word of requests ("list" caught "my todo
list"), examples for the words work best as real chat turns, those for the tools as text.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import msgspec

Shots = tuple[tuple[str, str], ...]

GATE = """Sort the user's message. Answer with one word.
talk: greetings, thanks, small talk, general knowledge, explanations, translations. Needs no file and no program.
task: needs the user's files, folders, notes, lists, programs, date, disk or computer, or a calculation.
unclear: asks to change something but does not say which thing."""
GATE_SHOTS: Shots = (
    ("good morning!", "talk"),
    ("how many words are in essay.txt?", "task"),
    ("who painted the Mona Lisa?", "talk"),
    ("what did I write about the dentist?", "task"),
    ("move it", "unclear"),
    ("open the file", "unclear"),
    ("open song.txt", "task"),
    ("put 'feed the cat' at the end of chores.txt", "task"),
    ("cheers, you are great", "talk"),
    ("which node version do I have?", "task"),
    ("what is on my shopping list?", "task"),
    ("explain what a noun is", "talk"),
    ("make a folder music", "task"),
    ("change the line", "unclear"),
    ("how do you say cat in Spanish?", "talk"),
    ("what is 31 times 12?", "task"),
    ("tell me the content of the poem", "task"),
    ("rename a.txt to b.txt", "task"),
    ("what is the largest ocean?", "talk"),
)
ROUTER = """Pick the first step for the user's message. Answer with one word.
talk: greetings, thanks, small talk, general knowledge, explanations, translations. Needs no file and no program.
unclear: asks to change or open something but does not say which thing.
read: look at one file to show, explain, summarise or answer a question about it.
search: find where something is mentioned, when no file is named.
folder: see which files are in a folder, or their sizes.
write: create a new file, or add a line to the end of a file.
edit: change or remove words inside an existing file.
shell: move, copy, rename, delete, make a folder, run a program, count lines, date, disk, versions, sums."""
ROUTER_SHOTS: Shots = (
    ("good morning!", "talk"),
    ("how many words are in essay.txt?", "shell"),
    ("who painted the Mona Lisa?", "talk"),
    ("where did I write about the dentist?", "search"),
    ("delete the thing", "unclear"),
    ("put 'feed the cat' at the end of chores.txt", "write"),
    ("cheers, you are great", "talk"),
    ("which node version do I have?", "shell"),
    ("what is on my shopping list?", "read"),
    ("explain what a noun is", "talk"),
    ("make a folder music", "shell"),
    ("open the file", "unclear"),
    ("set the colour to red in style.css", "edit"),
    ("what is 31 times 12?", "shell"),
    ("what does poem.txt say?", "read"),
    ("move a.txt to b.txt", "shell"),
    ("copy plan.txt to plan2.txt", "shell"),
    ("save a short poem about bees in bees.txt", "write"),
    ("show me what is in music/", "folder"),
    ("what is Anna's phone number?", "search"),
    ("start clock.py", "shell"),
    ("give me the gist of story.txt", "read"),
    ("open my diary", "read"),
    ("what was the price of the red bike?", "search"),
    ("who is the letter to?", "search"),
    ("make a script that counts to ten", "write"),
    ("drop the second line from plan.txt", "edit"),
    ("is there a picture here?", "folder"),
    ("what is the largest ocean?", "talk"),
)

WORD_TOOLS = {
    "read": "read_file",
    "search": "search_files",
    "folder": "list_files",
    "write": "write_file",
    "edit": "edit_file",
    "shell": "shell",
}
"""What the router's words stand for."""

_HEAD = "You are Deskhand, a personal assistant. You work in one folder on the user's computer."
_FORM = 'Answer with one JSON object and nothing else: {"tool": name, "arguments": {...}}.'
_FENCED = 'Answer with one JSON object in a fence and nothing else:\n```json\n{"tool": name, "arguments": {...}}\n```'
_LINES = {
    "read_file": "read_file(path): read a text file",
    "write_file": 'write_file(path, mode, content): write a file; mode "new" creates or replaces it, mode "append" '
    "adds to its end",
    "edit_file": "edit_file(path, old, new): replace the exact text old by new inside a file",
    "list_files": 'list_files(path): show names and sizes in a folder ("." is the current one)',
    "search_files": "search_files(text): find the files and lines that contain a word",
    "shell": "shell(command): run a command that no other tool covers: mv, cp, rm, mkdir, wc, date, python3",
    "ask_user": "ask_user(question): ask for a detail without which the request cannot be done",
    "reply": "reply(text): the final answer to the user; ends the turn",
}
_RULES = """Rules:
1. Small talk, thanks and general knowledge (capitals, translations): use reply at once with what you know. There is no internet.
2. Anything about the user's files, folders, programs or computer: use a tool first. Read a file with read_file before you talk about it or change it. Never say something is done before a tool has done it.
3. One tool per turn. You then see its result and choose the next one.
4. As soon as the request is done, use reply, and put the facts asked for (names, numbers, text) into it.
5. If the request does not say which file or what to do, use ask_user."""  # noqa: E501 -- as it was measured


class Step(msgspec.Struct, frozen=True):
    """One step of an example, and what the tool answered."""

    tool: str
    arguments: dict[str, str]
    result: str = ""


def _reply(text: str) -> Step:
    return Step("reply", {"text": text})


EXAMPLES: tuple[tuple[str, tuple[Step, ...]], ...] = (
    ("good morning!", (_reply("Good morning! What can I do for you?"),)),
    (
        "what is on my shopping list?",
        (
            Step("read_file", {"path": "shopping.md"}, "- eggs\n- soap"),
            _reply("On your shopping list: eggs and soap."),
        ),
    ),
    (
        "give me the gist of story.txt",
        (
            Step(
                "read_file",
                {"path": "story.txt"},
                "Bees matter because they pollinate our food crops. Farmers know it.",
            ),
            _reply("story.txt says that farming depends on bees."),
        ),
    ),
    (
        "how many words are in story.txt?",
        (
            Step("shell", {"command": "wc -w story.txt"}, "812 story.txt"),
            _reply("story.txt has 812 words."),
        ),
    ),
    (
        "put 'feed the cat' at the end of chores.txt",
        (
            Step(
                "write_file",
                {"path": "chores.txt", "mode": "append", "content": "feed the cat"},
                "ok, chores.txt now has 5 lines",
            ),
            _reply("I added 'feed the cat' to chores.txt."),
        ),
    ),
    (
        "move plan.txt to old_plan.txt",
        (
            Step("shell", {"command": "mv plan.txt old_plan.txt"}, "ok (no output)"),
            _reply("plan.txt is now called old_plan.txt."),
        ),
    ),
    (
        "set the colour to red in style.css",
        (
            Step("read_file", {"path": "style.css"}, "color: blue;"),
            Step(
                "edit_file",
                {"path": "style.css", "old": "color: blue;", "new": "color: red;"},
                "ok, replaced 1 time(s) in style.css",
            ),
            _reply("The colour in style.css is red now."),
        ),
    ),
    (
        "make a folder music",
        (
            Step("shell", {"command": "mkdir music"}, "ok (no output)"),
            _reply("I made the folder music."),
        ),
    ),
    (
        "where did I write about the dentist?",
        (
            Step("search_files", {"text": "dentist"}, "diary/may.txt:3: dentist on Monday"),
            _reply("In diary/may.txt: dentist on Monday."),
        ),
    ),
    (
        "write a song to song.txt and read it to me",
        (
            Step(
                "write_file",
                {"path": "song.txt", "mode": "new", "content": "La la la\nthe sun is up"},
                "ok, song.txt now has 2 lines",
            ),
            Step("read_file", {"path": "song.txt"}, "La la la\nthe sun is up"),
            _reply("I wrote song.txt. It goes: La la la, the sun is up."),
        ),
    ),
    (
        "which node version do I have?",
        (
            Step("shell", {"command": "node --version"}, "v20.1.0"),
            _reply("Node v20.1.0 is installed."),
        ),
    ),
    (
        "what is 31 times 12?",
        (
            Step("shell", {"command": "python3 -c 'print(31*12)'"}, "372"),
            _reply("31 times 12 is 372."),
        ),
    ),
    ("write to her", (Step("ask_user", {"question": "Whom do you mean, and what should I write?"}),)),
)


def as_json(tool: str, arguments: dict[str, Any]) -> str:
    """A step as the model writes it."""
    return json.dumps({"tool": tool, "arguments": arguments}, ensure_ascii=False)


def system_prompt(tools: Collection[str], fenced: bool = False) -> str:
    """The main prompt for a set of tools: about 1,300 tokens for all of them. Examples of other tools are left out."""
    known = [name for name in _LINES if name in tools or name == "reply"]
    lines = "\n".join(f"- {_LINES[name]}" for name in known)
    blocks = [f"{_HEAD} {_FENCED if fenced else _FORM}", f"Tools:\n{lines}", _RULES, "Examples:"]
    for asked, steps in EXAMPLES:
        if all(step.tool in known for step in steps):
            blocks.append(_example(asked, steps, fenced))
    return "\n".join(blocks)


def _example(asked: str, steps: tuple[Step, ...], fenced: bool) -> str:
    lines = [f"User: {asked}"]
    for step in steps:
        written = as_json(step.tool, step.arguments)
        lines.append(f"You: ```json\n{written}\n```" if fenced else f"You: {written}")
        if step.result:
            lines.append(f"Result of {step.tool}: {step.result}")
    return "\n".join(lines)


def after_result(asked: str) -> str:
    """What follows every result. Worded so that the model does not copy it into its answers."""
    return (
        f'\n\nIf this completes the request "{asked}", use reply and state the facts from the results. '
        "Otherwise do the next step."
    )


NOW_REPLY = "\n\nThis is done. Now reply to the user."
