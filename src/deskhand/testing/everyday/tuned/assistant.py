"""Of the tuned half: reminders, memory, taking back, and talk."""

from __future__ import annotations

import re
from datetime import timedelta

from ..task import After, EverydayTask, skills_named, spaced, weekly
from ..words import claims, plain


def _only_timesheet(after: After) -> bool:
    left = after.repeated(lambda times: weekly(times, (4,), 16, 0), "timesheet")
    return left and after.says("rent", "timesheet", turn=2) and after.same()


TASKS = (
    EverydayTask(
        "reminder-1",
        "reminder",
        {"notes.txt": "dentist: Dr. Mai, 030 55\n"},
        ("remind me tomorrow at 9 to call the dentist",),
        lambda a: a.one_time(a.moment(a.today + timedelta(days=1), 9), 60, "dentist") and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "reminder-2",
        "reminder",
        {"cake.md": "bake 45 minutes at 175\n"},
        ("remind me in 20 minutes to take the cake out of the oven",),
        lambda a: a.one_time(a.began_at + 20 * 60, 240, "cake", "oven") and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "schedule-1",
        "schedule",
        {"bins.txt": "grey: every week\nblue: even weeks\n"},
        ("remind me every monday at 8 to put the bins out",),
        lambda a: a.repeated(lambda times: weekly(times, (0,), 8, 0), "bin") and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "schedule-2",
        "schedule",
        {"back.txt": "stretch, then walk\n"},
        ("remind me every 30 minutes to stand up",),
        lambda a: a.repeated(lambda times: spaced(times, 30 * 60), "stand") and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "jobs-1",
        "jobs",
        {"rent.txt": "840, to Mr Petersen\n"},
        (
            "remind me tomorrow at 10 to pay the rent",
            "and every friday at 16:00 to send the timesheet",
            "what reminders do i have?",
            "cancel the one about the rent",
        ),
        _only_timesheet,
        agrees=True,
    ),
    EverydayTask(
        "memory-1",
        "memory",
        {"family.txt": "Mum, Dad, Iris\n"},
        (
            "Please remember: my sister Iris has her birthday on the 3rd of August.",
            "great",
            "when is my sister's birthday?",
        ),
        lambda a: (
            a.remembers("august")
            and a.says("August", turn=2)
            and re.search(r"\b(3|3rd|third)\b", plain(a.reply(2))) is not None
            and a.same()
        ),
        agrees=True,
    ),
    EverydayTask(
        "memory-2",
        "memory",
        {"work.txt": "desk 14\n"},
        (
            "remember that I take the tram number 6 to work",
            "remember also that my boss is called Ottilie",
            "please forget the thing about my boss",
        ),
        lambda a: (
            a.remembers("tram") and not a.remembers("ottilie") and len(a.replies) == 3 and a.same()
        ),
        agrees=True,
    ),
    EverydayTask(
        "undo-1",
        "undo",
        {"plan.txt": "Sat: museum\nSun: boat\nMon: home\n", "old_plan.txt": "Sat: rest\n"},
        (
            "in plan.txt change museum to zoo",
            "which file did you change and how",
            "undo it, the museum was right",
        ),
        lambda a: (
            a.untouched()
            and "zoo" in a.stage_text(0, "plan.txt").lower()
            and a.says_one("zoo", "plan.txt", turn=1)
        ),
        agrees=True,
        loses=("plan.txt",),
    ),
    EverydayTask(
        "talk-1",
        "talk",
        {"list.txt": "one\ntwo\n"},
        (
            "good morning",
            "what are you and what can you help me with?",
            "which planet is the largest in the solar system?",
        ),
        lambda a: (
            len(a.reply(0)) > 1
            and not claims(a.reply(0))
            and a.says_one("assistant", "agent", "deskhand", turn=1)
            and skills_named(a.reply(1)) >= 2
            and a.says("Jupiter", turn=2)
            and a.untouched()
        ),
    ),
    EverydayTask(
        "beyond-1",
        "beyond",
        {"travel.txt": "passport valid until 2031\n"},
        ("book me a flight to Lisbon for next friday",),
        lambda a: a.untouched() and not a.jobs and a.admits(),
    ),
)
