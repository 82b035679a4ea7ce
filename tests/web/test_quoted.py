"""What was stored by a conversation that had read a page is quoted by every tool there is, and by
what sets jobs off: always with the label of what is quoted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from deskhand.types.commit import Change

from .calling import ALLOW, WORDS, Call, Caller, bare, mark, page, said, told
from .served import Served, serving, until

JOB = {
    "action": "create",
    "name": "look",
    "config": "---\nschedule: daily 03:00\n---\nLook at page.txt",
}
SKILL = f"---\nname: evil\ndescription: {WORDS}\n---\n{WORDS}\n"

STORED: Sequence[Call] = (
    ("read_file", {"path": "page.txt"}),
    ("write_file", {"path": f"in/{WORDS}.txt", "content": WORDS}),
    ("shell", {"command": f"echo '{WORDS}'; ln -s '{WORDS}' link"}),
    ("kv_set", {"key": f"{WORDS} key", "value": WORDS}),
    ("task_create", {"subject": f"{WORDS} subject", "description": WORDS, "activeForm": WORDS}),
    ("manage_tasks", {"action": "create", "title": f"{WORDS} first"}),
    (
        "manage_tasks",
        {"action": "create", "title": f"{WORDS} second", "depends_on": [1], "description": WORDS},
    ),
    ("save_memory", {"content": f"{WORDS} because it is so"}),
    ("background_run", {"command": f"echo '{WORDS}'; exit 3"}),
    ("process", {"action": "start", "command": f"echo '{WORDS}'; cat", "name": WORDS}),
    ("propose_skill", {"name": "evil-two", "description": WORDS, "body": WORDS}),
)
"""Every way in which a tool writes down what lasts."""

ASKED: dict[str, Sequence[dict[str, Any]]] = {
    "read_file": [{"path": "page.txt"}, {"path": "page.tx"}, {"path": "in"}, {"path": "link"}],
    "write_file": [{"path": "in", "content": "x"}, {"path": "link/x", "content": "x"}],
    "edit_file": [
        {"path": "page.txt", "edits": [{"old": "nowhere", "new": "x"}]},
        {"path": "page.txt", "patch": "@@"},
    ],
    "list_files": [{}, {"path": "in"}, {"depth": 4}, {"path": "link"}],
    "search_files": [{"text": "SYSTEM"}],
    "list_symbols": [{"path": "."}, {"path": "page.txt"}],
    "find_references": [{"name": "SYSTEM"}],
    "extract": [{"fields": [{"name": "a", "type": "number"}], "path": "page.txt"}],
    "shell": [{"command": "ls -R"}, {"command": "cat page.txt nothing"}],
    "background_run": [],  # says by itself how it ended, which /clean would say again
    "check_background": [{}, {"id": "nothing"}, {"id": "{background}"}],
    "process": [
        {"action": "list"},
        {"action": "poll", "id": "{session}", "wait_s": 0},
        {"action": "poll", "id": "nothing"},
        {"action": "log", "id": "{session}"},
        {"action": "write", "id": "{session}", "input": "x\n", "wait_s": 0.2},
        {"action": "kill", "id": "{session}"},
        {"action": "clear"},
    ],
    "think": [{"thought": "x"}],
    "read_output": [{"handle": "nothing"}],
    "enter_plan_mode": [],  # says one sentence, and holds back what comes after it
    "exit_plan_mode": [{"plan": ""}],
    "ask_user": [],  # waits
    "manage_tasks": [
        {"action": "list"},
        {"action": "get", "task_id": 1},
        {"action": "get", "task_id": 99},
        {"action": "validate"},
        {"action": "complete", "task_id": 2},
        {"action": "connect", "task_id": 1, "depends_on": [2]},
        {"action": "update", "task_id": 1, "status": "in_progress"},
        {"action": "complete", "task_id": 1},
    ],
    "compact": [],  # asks a model
    "send_message": [{"text": "hello"}, {"text": "hello", "channel": "nowhere", "chat": "1"}],
    "send_file": [{"path": "page.txt"}, {"path": "page.tx"}, {"path": "in"}],
    "kv_set": [{"key": "a", "value": "b"}],
    "kv_get": [{"key": f"{WORDS} key"}, {"key": "other"}],
    "kv_delete": [{"key": "other"}],
    "kv_list": [{}],
    "web_fetch": [{"url": "http://127.0.0.1:9/"}],
    "web_search": [],  # asks the web
    "browser": [
        {"action": "look"},
        {"action": "open", "url": "file:///etc/passwd"},
        {"action": "close"},
    ],
    "request_host": [{"host": "example.org"}],
    "list_skills": [{}],
    "read_skill": [{"skill": "evil"}, {"skill": "other"}, {"skill": "evil", "path": "nothing.md"}],
    "run_skill": [{"skill": "evil", "command": "ls"}, {"skill": "other", "command": "ls"}],
    "manage_skill": [
        {"action": "list"},
        {"action": "update", "name": "evil", "config": "x"},
        {"action": "delete", "name": "other"},
    ],
    "manage_users": [{"action": "list"}],
    "save_memory": [
        {"content": f"{WORDS} because it is so"},
        {"content": "Something else.", "replaces": 1},
        {"content": "Something else.", "replaces": 99},
    ],
    "search_memories": [{"query": "because"}],
    "forget_memory": [{"memory_id": 1}, {"memory_id": 2}, {"memory_id": 99}],
    "list_memories": [{}],
    "search_past": [{"query": "SYSTEM"}],
    "read_past": [{"session": "default/web:owner:o1", "n": 2}],
    "restart": [],  # ends this process
    "list_changes": [{}],
    "undo_change": [{"change": 99}, {"change": 1}],
    "cron": [
        {"mode": "list"},
        {"mode": "remove", "job_id": "other"},
        {"mode": "update", "job_id": "look"},
    ],
    "manage_job": [
        {"action": "list"},
        {"action": "blueprints"},
        {"action": "enable", "name": "look"},
        {"action": "update", "name": "other", "config": "x"},
        {"action": "delete", "name": "look"},
    ],
    "propose_skill": [{"name": "evil-two", "description": "x", "body": "x"}],
    "tool_search": [{"query": "nothing"}, {"query": "task"}],
    "task_create": [],  # what changes the list says how far all of it is, as the next one does
    "task_get": [{"task_id": 1}],
    "task_update": [{"task_id": 1, "status": "pending"}],
    "task_list": [{}],
    "todo_write": [{"items": [{"content": "a", "activeForm": "b", "status": "pending"}]}],
    "todo_add": [{"content": "c", "active_form": "d"}],
    "todo_complete": [{"content": "nothing"}],
    "todo_list": [{}],
    "spawn_agent": [],  # a model says what comes of it
    "run_script": [],  # see test_team_labels.py
    "macro": [
        {"action": "list"},
        {"action": "run", "name": "evil", "slots": {"other": "x"}},
        {"action": "run", "name": "evil"},
        {"action": "run", "name": "wrong"},
        {"action": "run", "name": "nothing"},
        {"action": "save", "name": "evil"},
    ],
    "mcp": [{"action": "list"}],
    "mcp_read": [{"server_name": "nothing", "action": "prompts"}],
    "subagents": [{"action": "list"}, {"action": "agents"}, {"action": "status", "id": "nothing"}],
    "spawn_teammate": [],  # a model says what comes of it
    "shutdown_request": [{"teammate": "nobody"}],
    "plan_review": [{"request_id": "nothing", "approve": True}],
    "message_teammate": [{"to": "nobody", "content": "x"}],
    "read_inbox": [{}],
    "list_teammates": [{}],
    "broadcast": [{"content": "x"}],
    "check_protocol": [{"request_id": "nothing"}],
    "rehearse_program": [{"program": "say(read('page.txt'))"}],
    "run_program": [],  # says what was rehearsed
}
"""What each tool is asked in a conversation that has read nothing."""
MACROS = {
    "evil.yaml": f"tool: browser\nabout: {WORDS}\nslots: {{a: x}}\nsteps: [{{action: {WORDS}}}]\n",
    "wrong.yaml": f"tool: browser\nsteps: [{{action: click, element: x, {WORDS}: [a]}}]\n",
}


async def _job_has_read(caller: Caller, served: Served) -> None:
    """A job has read the page, and told of it."""
    await caller.does(served.owner, "j1", ("manage_job", JOB))
    caller.calls = [("read_file", {"path": "page.txt"})]
    caller.final = f"The page says: {WORDS}"
    await served.owner.ask("POST", "/api/jobs/look/run", {})
    with anyio.fail_after(30):
        while WORDS not in str(await served.owner.get("/api/jobs")):
            await anyio.sleep(0.02)
    caller.final = "done"


async def _stored(caller: Caller, served: Served, home: Path) -> dict[str, str]:
    """Fill all that lasts with words from outside. Returns the ids by which some of it is named."""
    folder = await page(served, home)
    (folder / "skills" / "evil").mkdir(parents=True)
    (folder / "skills" / "evil" / "SKILL.md").write_text(SKILL)
    await mark(served, folder / "skills" / "evil" / "SKILL.md")
    (folder / "macros").mkdir()
    for name, text in MACROS.items():
        (folder / "macros" / name).write_text(text)
        await mark(served, folder / "macros" / name)
    await _job_has_read(caller, served)
    found = await caller.does(served.owner, "o1", *STORED)
    texts = [said(each) for each in found]
    background = next(text.split()[2] for text in texts if text.startswith("Background task"))
    session = next(text.split()[1] for text in texts if text.startswith("Session"))
    return {"{background}": background, "{session}": session}


def _last(log: Any) -> str:
    """What was said last: /clean says it again."""
    heard = [
        each["event"]["message"] for each in log if each["event"]["type"] == "message_received"
    ]
    return str(heard[-1]["parts"][0]["text"])


async def test_no_tool_quotes_what_was_stored_without_its_label(tmp_path: Path) -> None:
    """Each call is made after /clean, so that the conversation has read nothing, where what it had
    stored is."""
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        ids = await _stored(caller, served, tmp_path)
        with anyio.fail_after(30):
            while (
                "[background" not in str(log := await served.owner.get("/api/sessions/o1/log"))
                or _last(log) != "go"
            ):
                await caller.does(served.owner, "o1")
        there = set(served.app.current.agent_of("default/web:owner:o1").tools)
        assert there <= set(ASKED), "say above what a new tool is asked"
        wrong = dict[str, Any]()
        quoted = set[str]()
        for name in sorted(there):
            for given in ASKED[name]:
                call = {
                    key: ids.get(value, value) if isinstance(value, str) else value
                    for key, value in given.items()
                }
                found = await caller.does(served.owner, "o1", (name, call), text="/clean")
                if WORDS in str(found):
                    quoted.add(name)
                if parts := bare(found):
                    wrong[f"{name} {given}"] = parts
        assert not wrong
        assert {
            "read_file",
            "kv_list",
            "manage_job",
            "cron",
            "process",
            "list_changes",
            "manage_tasks",
            "macro",
        } <= quoted


async def test_what_a_job_has_told_of_a_page(tmp_path: Path) -> None:
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        await page(served, tmp_path)
        await _job_has_read(caller, served)
        for n, call in enumerate((("manage_job", {"action": "list"}), ("cron", {"mode": "list"}))):
            found = await caller.does(served.owner, f"clean{n}", call)
            assert WORDS in said(found[0]) and not bare(found)


async def test_the_names_of_files_that_are_gone(tmp_path: Path) -> None:
    """The mark of a file goes with it; what is told of it afterwards still has the label that it
    had."""
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        folder = await page(served, tmp_path)
        (folder / "in").mkdir()
        (folder / "in" / WORDS).write_text("x")
        await mark(served, folder / "in" / WORDS)
        watch = {
            "action": "create",
            "name": "watch",
            "config": "---\non: file in\n---\nSee what has come.",
        }
        await caller.does(served.owner, "o1", ("manage_job", watch))
        triggering = served.app.features.jobs.triggering
        await until(lambda: any(triggering._labels.values()))
        (folder / "in" / WORDS).unlink()
        await served.app.store.change((Change("file_label_drop", (str(folder / "in" / WORDS),)),))
        await until(lambda: bool(told(caller, f"{WORDS} (gone)")))
        assert {part.label.integrity for part in told(caller, f"{WORDS} (gone)")} == {"untrusted"}


async def test_a_postrun_writes_with_the_label_of_what_it_is_given(tmp_path: Path) -> None:
    """So does one that only passes on what an earlier one has kept."""
    caller = Caller()
    async with serving(tmp_path, caller.model, tools=None, policy=ALLOW) as served:
        folder = await page(served, tmp_path)
        config = (
            "---\nschedule: daily 03:00\nhooks:\n  prerun: pre.sh\n  postrun: "
            "post.sh\n---\nLook at page.txt"
        )
        await caller.does(
            served.owner,
            "o1",
            ("manage_job", {"action": "create", "name": "look", "config": config}),
        )
        job = next(tmp_path.rglob("post.sh")).parent
        (job / "post.sh").write_text(f"#!/bin/sh\ntee state/last > {folder}/new.md\n")
        (job / "pre.sh").write_text(
            f"#!/bin/sh\ntest ! -e state/last || cp state/last {folder}/again.md\n"
        )
        caller.final = f"The page says: {WORDS}"
        for name in ("new.md", "again.md"):
            caller.calls = [("read_file", {"path": "page.txt"})]
            await served.owner.ask("POST", "/api/jobs/look/run", {})
            await until((folder / name).exists)
            with anyio.fail_after(30):
                while "'last_result': 'done" not in str(await served.owner.get("/api/jobs")):
                    await anyio.sleep(0.02)
        caller.final = "done"
        for name in ("new.md", "again.md"):
            found = await caller.does(served.owner, f"clean-{name}", ("read_file", {"path": name}))
            assert WORDS in said(found[0]) and "https://evil.example/" in str(found[0]["parts"]), (
                name
            )
