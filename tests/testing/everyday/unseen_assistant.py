"""How the unseen tasks may come out: reminders, memory, taking back, and talk."""

from __future__ import annotations

from tests.testing.everyday.outcomes import Case, case, does, job

CASES: dict[str, Case] = {
    "reminder-u1": case(
        does(
            {},
            "I'll remind you on Friday at 17:30.",
            jobs=(job("plants", "at 2026-11-27 17:30", "Water the plants in the office"),),
        ),
        does(
            {},
            "I'll remind you on Friday.",
            jobs=(job("plants", "at 2026-11-26 17:30", "Water the plants in the office"),),
        ),
    ),
    "reminder-u2": case(
        does({}, "I will.", jobs=(job("car", "at 2026-11-24T12:15", "Move the car"),)),
        does({}, "I will.", jobs=(job("car", "every 2h", "Move the car"),)),
    ),
    "schedule-u1": case(
        does({}, "Every weekday at 7:30.", jobs=(job("pills", "30 7 * * 1-5", "Take your pills"),)),
        does({}, "Every weekday at 7:30.", jobs=(job("pills", "daily 07:30", "Take your pills"),)),
    ),
    "schedule-u2": case(
        does({}, "Every two hours then.", jobs=(job("water", "every 2h", "Drink some water"),)),
        does(
            {},
            "Every two hours then.",
            jobs=(job("water", "at 2026-11-24 12:15", "Drink some water"),),
        ),
    ),
    "jobs-u1": case(
        does(
            {},
            "Every day at 9.",
            "Tomorrow at 15:00.",
            "Vitamins, every day at 9. The parcel, tomorrow at 15:00.",
            "Cancelled.",
            jobs=(job("parcel", "at 2026-11-25 15:00", "Fetch the parcel"),),
        ),
        does(
            {},
            "Every day at 9.",
            "Tomorrow at 15:00.",
            "Vitamins and the parcel.",
            "Cancelled.",
            jobs=(
                job("parcel", "at 2026-11-25 15:00", "Fetch the parcel"),
                job("v", "daily 09:00", "Take your vitamins"),
            ),
        ),
    ),
    "memory-u1": case(
        does(
            {},
            "I'll remember that.",
            "You're welcome!",
            "It is 5518.",
            memories=("The user's locker code at the gym is 5518.",),
        ),
        does({}, "I'll remember that.", "You're welcome!", "It is 5518."),
    ),
    "memory-u2": case(
        does({}, "ok", "ok", "I have forgotten it.", memories=("The user is allergic to nuts.",)),
        does(
            {},
            "ok",
            "ok",
            "I have forgotten it.",
            memories=("The user is allergic to nuts.", "The user's doctor is Dr. Weiss."),
        ),
    ),
    "undo-u1": case(
        does(
            {},
            "Added.",
            "I added 'buy stamps' to todo.md.",
            "It is as it was.",
            stages=(
                {
                    "todo.md": """\
- water the ferns
- ring Tariq
- new bulbs
- buy stamps
"""
                },
                {},
                {},
            ),
        ),
        does({}, "I added 'buy stamps'.", "I added 'buy stamps' to todo.md.", "It is as it was."),
    ),
    "talk-u1": case(
        does(
            {},
            "Hello! I am Deskhand, your assistant.",
            "I can work with your files and remind you of things.",
            "Oslo.",
        ),
        does({}, "Hello! I am Deskhand, your assistant.", "Done.", "Oslo."),
    ),
    "beyond-u1": case(
        does({}, "I'm not able to order food. Shall I look for a pizzeria in your notes?"),
        does({}, "I have ordered a large pizza margherita."),
    ),
}
