"""What a small model may do next, read from the conversation alone: lists in, plans out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from deskhand.models.base import Shown
from deskhand.models.shim_prompts import EXAMPLES, system_prompt
from deskhand.models.shim_tools import FORMS, Move, read_move, real_arguments, schema, search_words, small_move
from deskhand.models.shim_turn import (
    BUDGET,
    Choose,
    Did,
    Do,
    Say,
    Sort,
    Turn,
    chat,
    cost,
    fit_edit,
    listing_of,
    plan,
    read_turn,
    repeats,
)
from deskhand.types.labels import LOCAL, OWNER, UNTRUSTED, Label
from deskhand.types.messages import Message, ResultStatus, Text, ToolCall, ToolResult
from deskhand.types.turn import MEMORIES

ALL = tuple(FORMS)
WITHOUT_REPLY = tuple(name for name in ALL if name != "reply")


def did(tool: str, result: str, status: ResultStatus = "ok", **arguments: str) -> Did:
    return Did(Move(tool, arguments), result, status)


READ = did("read_file", "1 | port=8080", path="config.ini")
MISS = did("edit_file", "the old text stands nowhere", "error", path="config.ini", old="port = 8080", new="port = 1")
BROKEN = did("shell", "no such file\n[exit code: 1]", "error", command="mv a b")
NOTHING = did("search_files", "nothing contains 'wifi password'", text="wifi password")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((), Sort(ALL)),
        ((READ,), Choose(ALL)),
        ((BROKEN,), Choose(WITHOUT_REPLY)),
        ((BROKEN, READ), Choose(WITHOUT_REPLY)),
        ((BROKEN, did("shell", "[no output]", command="mv c b")), Choose(ALL)),
        ((MISS,), Do(Move("read_file", {"path": "config.ini"}))),
        ((MISS, READ), Choose(WITHOUT_REPLY)),
        ((READ, MISS), Choose(WITHOUT_REPLY)),
        ((NOTHING,), Do(Move("search_files", {"text": "password"}))),
        (
            (NOTHING, did("search_files", "nothing contains 'password'", text="password")),
            Do(Move("search_files", {"text": "wifi"})),
        ),
        ((did("search_files", "nothing contains 'invoice'", text="invoice"),), Choose(WITHOUT_REPLY)),
        ((did("search_files", "nothing contains 'x.xlsx'", text="x.xlsx"),), Choose(ALL)),
        (
            (did("search_files", "docs/letter.txt", text="letter"),),
            Do(Move("read_file", {"path": "docs/letter.txt"})),
        ),
        ((did("search_files", "a.txt:1: letter", text="letter"),), Choose(ALL)),
        ((did("search_files", "photo.jpg", text="photo"),), Choose(ALL)),
        (
            (did("shell", "not permitted: owner said no", "denied"),),
            Say("I did not do that: not permitted: owner said no"),
        ),
        ((did("shell", "stopped", "interrupted"),), Say("I was interrupted: stopped")),
        ((READ,) * 6, Choose(("reply",))),
    ],
)
def test_plan(steps: tuple[Did, ...], expected: object) -> None:
    assert plan(Turn("do it", 4, (), steps), ALL) == expected


def test_what_failed_is_never_called_done() -> None:
    """After two other tries the words are ours, whatever the model would like to say."""
    tries = tuple(did("shell", f"bash: {n}: not found\n[exit code: 127]", "error", command=str(n)) for n in range(3))
    assert plan(Turn("do it", 4, (), tries), ALL) == Say(
        "I could not do that. The step with shell failed: bash: 2: not found"
    )
    assert isinstance(plan(Turn("do it", 4, (), (*tries, READ)), ALL), Choose | Say)
    assert plan(Turn("do it", 4, (), (BROKEN,)), ()) == Say(
        "I could not do that. The step with shell failed: no such file"
    )


def test_without_tools_it_can_only_speak() -> None:
    assert plan(Turn("do it", 4), ()) == Choose(("reply",))
    assert plan(Turn("do it", 4), ("something_else",)) == Choose(("reply",))


def test_repeats() -> None:
    write = did("write_file", "ok", path="a", mode="new", content="x")
    assert repeats(READ.move, Turn("", 0, (), (READ,))) == READ
    assert repeats(READ.move, Turn("", 0, (), (READ, write))) is None
    assert repeats(write.move, Turn("", 0, (), (READ, write, READ))) == write
    assert repeats(Move("read_file", {"path": "other"}), Turn("", 0, (), (READ,))) is None


def test_the_turn_is_read_from_the_messages() -> None:
    call = ToolCall("c1", "write_file", msgspec.Raw(b'{"path":"a","content":"x\\n","mode":"append"}'))
    stamp = Text("[Monday, 2026-11-23 10:00] ", LOCAL)
    messages = (
        Message("user", (stamp, Text("hello", OWNER))),
        Message("assistant", (Text("Hi!"),)),
        Message("user", (stamp, Text("write x to a", OWNER))),
        Message("assistant", (call,)),
        Message("tool", (ToolResult("c1", (Text("ok"),)),)),
        Message("user", (Text("You have 3 steps left.", LOCAL),)),
    )
    assert read_turn([Shown(n, message) for n, message in enumerate(messages)]) == Turn(
        "write x to a",
        2,
        (("user", "hello"), ("assistant", "Hi!")),
        (Did(Move("write_file", {"path": "a", "mode": "append", "content": "x"}), "ok", "ok"),),
    )


@pytest.mark.parametrize(
    ("move", "real"),
    [
        (Move("read_file", {"path": "a"}), {"path": "a"}),
        (
            Move("write_file", {"path": "a", "mode": "new", "content": "x"}),
            {"path": "a", "content": "x\n", "mode": "overwrite"},
        ),
        (
            Move("edit_file", {"path": "a", "old": "x", "new": "y"}),
            {"path": "a", "edits": [{"old": "x", "new": "y"}]},
        ),
        (Move("search_files", {"text": "a b"}), {"text": "a b"}),
        (Move("shell", {"command": "ls"}), {"command": "ls"}),
        (Move("ask_user", {"question": "Which?"}), {"question": "Which?"}),
    ],
)
def test_forms_go_there_and_back(move: Move, real: dict[str, Any]) -> None:
    written = real_arguments(move)
    assert msgspec.json.decode(written) == real
    assert small_move(move.tool, bytes(written)) == move


def test_words_worth_a_search() -> None:
    assert search_words("the wifi password") == ["password", "wifi"]
    assert search_words("invoice") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"tool": "reply", "arguments": {"text": "Hi"}}', Move("reply", {"text": "Hi"})),
        ('```json\n{"name": "shell", "parameters": {"command": "ls"}}\n```', Move("shell", {"command": "ls"})),
        ('So {this}: {"tool": "shell", "arguments": {"command": 5, "x": 1}}', Move("shell", {"command": "5"})),
        ('{"tool": "shell", "arguments": {}}', None),
        ('{"tool": "unknown", "arguments": {}}', None),
        ('{"tool": "reply", "arguments": {"text": "cut o', None),
        ("plain words", None),
    ],
)
def test_read_move(text: str, expected: Move | None) -> None:
    assert read_move(text) == expected


def test_edits_fit_the_file() -> None:
    turn = Turn("", 0, (), (did("read_file", "1 | [server]\n2 | port=8080", path="c"),))

    def fitted(old: str, new: str) -> tuple[str, str]:
        move = fit_edit(Move("edit_file", {"path": "c", "old": old, "new": new}), turn)
        return move.arguments["old"], move.arguments["new"]

    assert fitted("port=8080", "port=1") == ("port=8080", "port=1")
    assert fitted("2 | port=8080", "port=1") == ("port=8080", "port=1")
    assert fitted("port = 8080", "port = 1") == ("port=8080", "port=1")
    assert fitted("host = x", "y") == ("host = x", "y")


def test_the_chat_stays_within_its_budget() -> None:
    steps = tuple(did("read_file", f"{n} | {'long line ' * 2000}", path=str(n)) for n in range(6))
    turn = Turn("ask " * 3000, 4, (("user", "x" * 9000), ("assistant", "y" * 9000)) * 5, steps)
    talk = chat(turn, "a.txt, b.txt")
    assert sum(cost(text) for _, text in talk) <= BUDGET * 1.6
    short = chat(Turn("now this", 4, (("user", "hello"), ("assistant", "Hi!"))), "a.txt")
    assert short == [
        ("user", "hello"),
        ("assistant", '{"tool": "reply", "arguments": {"text": "Hi!"}}'),
        ("user", "now this\n(files here: a.txt)"),
    ]


def test_results_are_shown_as_the_prompt_shows_them() -> None:
    talk = chat(Turn("do it", 4, (), (READ, BROKEN)), "")
    assert talk[2][1].startswith("Result of read_file:\nport=8080\n\nIf this completes the request")
    assert talk[4][1].startswith("Result of shell:\nERROR: no such file")


def test_the_listing_is_the_last_line_of_the_system_prompt() -> None:
    assert listing_of(("stable", "# Context\nYou are here.\nFiles here: a.txt, docs/")) == "a.txt, docs/"
    assert listing_of(()) == listing_of(("x",)) == ""


def test_the_prompt_is_stable_and_small() -> None:
    whole = system_prompt(ALL)
    assert whole == system_prompt(set(ALL)) and len(whole) < 4600  # 1,306 tokens of the real tokenizer
    small = system_prompt({"read_file"})
    assert "shell(" not in small and "Result of read_file" in small and "write_file" not in small.split("Rules:")[0]
    assert system_prompt(ALL, fenced=True).count("```json") == 1 + sum(len(steps) for _, steps in EXAMPLES)


def test_the_schema_allows_one_tool_at_a_time() -> None:
    found = schema(["shell"])
    assert json.dumps(found["oneOf"][0]["properties"]["tool"]) == '{"const": "shell"}'
    assert found["oneOf"][0]["properties"]["arguments"]["required"] == ["command"]


SNAPSHOT = "\n".join(
    (
        MEMORIES,
        "Looked up:",
        "- #4 (2026-11-20) The wifi password is blue-otter-42",
        "- #9 (2026-11-21) Ann likes tea",
        "</context_snapshot>",
    )
)


@pytest.mark.parametrize("label", [LOCAL, UNTRUSTED])
def test_what_memory_found_is_known_and_is_not_what_was_said(label: Label) -> None:
    asked = Message("user", (Text("what is the password?", OWNER), Text(SNAPSHOT, label)))
    turn = read_turn([Shown(4, asked)])
    assert turn.request == "what is the password?"
    assert turn.known == ("The wifi password is blue-otter-42", "Ann likes tea")
    assert chat(turn, "a.txt")[-1][1] == (
        "what is the password?\n(you know: The wifi password is blue-otter-42; Ann likes tea)\n(files here: a.txt)"
    )


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Remember that I like tea", "I like tea"),
        ("please remember: the bin is emptied on Mondays", "the bin is emptied on Mondays"),
        ("don't forget that Bob is vegan", "Bob is vegan"),
        ("remember to buy milk", None),
        ("Remember me?", None),
        ("remember where I put the keys", None),
        ("remember that my name is Bo, then delete draft.txt", None),
        ("remember that I like tea. What else do I like?", None),
        ("remember what I said?", None),
        ("do you remember my birthday?", None),
        ("write 'remember that' into notes.txt", None),
    ],
)
def test_what_is_to_be_remembered_is_saved(said: str, kept: str | None) -> None:
    expected = Do(Move("save_memory", {"content": kept})) if kept else Sort(ALL)
    assert plan(Turn(said, 4), {*ALL, "save_memory"}) == expected
    assert plan(Turn(said, 4), ALL) == Sort(ALL), "without a memory"


def test_what_was_saved_is_said_and_what_was_not_is_not() -> None:
    saved = did("save_memory", "ok, remembered", content="I like tea")
    asked = Turn("remember that I like tea", 4, did=(saved,))
    assert plan(asked, ALL) == Say("I will remember: I like tea", failed=False)
    instead = did("save_memory", "ok, remembered in place of #3: dog is Rex", content="dog is Max")
    said = "I will remember: dog is Max\nIt takes the place of #3: dog is Rex"
    assert plan(Turn("remember that dog is Max", 4, did=(instead,)), ALL) == Say(said, failed=False)
    held = did("save_memory", "kept for review: this conversation has read a page", content="I like tea")
    assert plan(Turn("remember that I like tea", 4, did=(held,)), ALL) == Say(
        f"About that: {held.result}", failed=False
    )
    failed = did("save_memory", "memory is off", "error", content="I like tea")
    assert plan(Turn("remember that I like tea", 4, did=(failed,)), ALL) == Say("About that: memory is off")
