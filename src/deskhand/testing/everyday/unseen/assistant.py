"""Of the unseen half: reminders, memory, taking back, and talk."""

from __future__ import annotations

from datetime import timedelta

from ..task import After, EverydayTask, skills_named, spaced, weekly


def _friday(after: After) -> bool:
    days = (4 - after.today.weekday()) % 7 or 7
    dates = [after.today + timedelta(days=days), after.today + timedelta(days=days + 7)]
    return (
        any(after.one_time(after.moment(day, 17, 30), 60, "plants") for day in dates)
        and after.same()
    )


def _only_parcel(after: After) -> bool:
    at = after.moment(after.today + timedelta(days=1), 15)
    return (
        after.one_time(at, 60, "parcel")
        and after.says("parcel", turn=2)
        and after.says_one("vitamin", turn=2)
        and after.same()
    )


TASKS = (
    EverydayTask(
        "reminder-u1",
        "reminder",
        {"office.txt": "plants: second floor\n"},
        ("Please remind me next Friday at 17:30 to water the plants in the office",),
        _friday,
        agrees=True,
    ),
    EverydayTask(
        "reminder-u2",
        "reminder",
        {"parking.txt": "zone C, 2 h with disc\n"},
        ("in 2 hours remind me to move the car",),
        lambda a: a.one_time(a.began_at + 2 * 3600, 240, "car") and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "schedule-u1",
        "schedule",
        {"pills.txt": "one white, one yellow\n"},
        ("every weekday at 7:30 remind me to take my pills please",),
        lambda a: (
            a.repeated(lambda times: weekly(times, (0, 1, 2, 3, 4), 7, 30), "pill") and a.same()
        ),
        agrees=True,
    ),
    EverydayTask(
        "schedule-u2",
        "schedule",
        {"health.txt": "2 l a day\n"},
        ("remind me every 2 hours to drink some water",),
        lambda a: a.repeated(lambda times: spaced(times, 2 * 3600), "water", "drink") and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "jobs-u1",
        "jobs",
        {"parcels.txt": "shop on the corner, open until 18:00\n"},
        (
            "remind me every day at 9 to take my vitamins",
            "and tomorrow at 15:00 to fetch the parcel",
            "which reminders are set?",
            "please cancel the vitamins one",
        ),
        _only_parcel,
        agrees=True,
    ),
    EverydayTask(
        "memory-u1",
        "memory",
        {"gym.txt": "open 6-22\n"},
        (
            "remember that my locker code at the gym is 5518",
            "thanks",
            "what was my locker code again?",
        ),
        lambda a: a.remembers("5518") and a.number(5518, turn=2) and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "memory-u2",
        "memory",
        {"health.txt": "blood group 0+\n"},
        (
            "remember that i am allergic to nuts",
            "and remember that my doctor is Dr. Weiss",
            "forget what i told you about the doctor, i am looking for a new one",
        ),
        lambda a: (
            a.remembers("nuts") and not a.remembers("weiss") and len(a.replies) == 3 and a.same()
        ),
        agrees=True,
    ),
    EverydayTask(
        "undo-u1",
        "undo",
        {"todo.md": "- water the ferns\n- ring Tariq\n- new bulbs\n", "done.md": "- bins\n"},
        ("add 'buy stamps' to todo.md", "what did you change?", "undo that please"),
        lambda a: (
            a.untouched()
            and "stamps" in a.stage_text(0, "todo.md")
            and a.says_one("stamps", "todo.md", turn=1)
        ),
        agrees=True,
        loses=("todo.md",),
    ),
    EverydayTask(
        "talk-u1",
        "talk",
        {"notes.txt": "buy a lamp\n"},
        (
            "hi there! who are you?",
            "and what can you do for me",
            "ok. what is the capital of norway?",
        ),
        lambda a: (
            a.says_one("assistant", "agent", "deskhand", turn=0)
            and skills_named(a.reply(1)) >= 2
            and a.says("Oslo", turn=2)
            and a.untouched()
        ),
    ),
    EverydayTask(
        "beyond-u1",
        "beyond",
        {"people.txt": "Mum 0171 22\nBoss 0171 33\n"},
        ("order a large pizza margherita to my place please",),
        lambda a: a.untouched() and not a.jobs and a.admits(),
    ),
)
