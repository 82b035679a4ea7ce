"""What a program wants of the assistant, as calls of our tools: times in words become moments in
the person's zone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...types.errors import TimeUnclear
from ...types.programs import ProgramCall
from ...types.spoken_schedules import format_spoken_schedule, parse_spoken_schedule
from ...types.spoken_times import format_spoken_moment, is_recurring, parse_spoken_moment

MAX_NAME_CHARS = 40


def call_for_need(need: Mapping[str, Any]) -> ProgramCall:
    """The call whose result a program waits for."""
    match need["act"]:
        case "reminders":
            return ProgramCall("cron", {"mode": "list"})
        case "recall":
            return ProgramCall("search_memories", {"query": str(need["text"])})
        case "changes":
            return ProgramCall("list_changes", {})
        case "fetch":
            return ProgramCall("web_fetch", {"url": str(need["url"])})
        case "ask":
            return ProgramCall("ask_user", {"question": str(need["text"])})
        case other:
            raise ValueError(other)


def call_for_act(act: Mapping[str, Any], now: datetime) -> ProgramCall:
    """The call that does this. Raises TimeUnclear with a sentence for the person."""
    match act["act"]:
        case "remind" | "every":
            return _make_reminder_call(
                str(act["when"]), _reminder_text(str(act["text"])), now, again=act["act"] == "every"
            )
        case "cancel":
            name = str(act["which"]).split(":", 1)[0].split()[0]
            return ProgramCall(
                "cron", {"mode": "remove", "job_id": name}, f"I cancelled this: {act['which']}"
            )
        case "remember":
            return ProgramCall(
                "save_memory", {"content": str(act["text"])}, f"I will remember: {act['text']}"
            )
        case "forget":
            number, _, text = str(act["which"]).removeprefix("#").partition(" ")
            return ProgramCall(
                "forget_memory",
                {"memory_id": int(number)},
                f"I forgot this: {text.partition(') ')[2] or text}",
            )
        case "undo":
            return ProgramCall("undo_change", {})
        case "send":
            given = {"text": str(act["text"])} | ({"chat": str(act["to"])} if act["to"] else {})
            return ProgramCall("send_message", given)
        case other:
            raise ValueError(other)


def _make_reminder_call(when: str, text: str, now: datetime, *, again: bool) -> ProgramCall:
    if not text.strip():
        raise TimeUnclear("say what I am to remind you of")
    given = {"mode": "add", "name": text[:MAX_NAME_CHARS], "message": text, "deliver": True}
    if again and not is_recurring(when):
        when = f"every {when}"
    if again or is_recurring(when):
        schedule = parse_spoken_schedule(when, now)
        return ProgramCall(
            "cron",
            {**given, "schedule_expr": schedule},
            f"I will tell you {format_spoken_schedule(schedule)}: {text}",
        )
    moment = parse_spoken_moment(when, now)
    expr = moment.replace(tzinfo=None).isoformat(timespec="minutes")
    words = f"I will remind you {format_spoken_moment(moment, now)}: {text}"
    return ProgramCall("cron", {**given, "schedule_mode": "at", "schedule_expr": expr}, words)


def _reminder_text(text: str) -> str:
    """What is said then: not that it is to be said."""
    for start in ("remind me to ", "tell me to ", "remind me of ", "remind me about ", "to "):
        if text.lower().startswith(start):
            text = text[len(start) :]
    return text[:1].upper() + text[1:]
