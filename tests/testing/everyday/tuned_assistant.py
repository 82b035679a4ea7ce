"""How the tuned tasks may come out: reminders, memory, taking back, and talk."""

from __future__ import annotations

from tests.testing.everyday.outcomes import Case, case, does, job

CASES: dict[str, Case] = {
    "reminder-1": case(
        does(
            {},
            "I'll remind you tomorrow at 9:00.",
            jobs=(job("call-the-dentist", "at 2026-11-25 09:00", "Call the dentist"),),
        ),
        does({}, "I'll remind you tomorrow at 9:00."),
        does(
            {},
            "I'll remind you tomorrow at 9:00.",
            jobs=(job("dentist", "daily 09:00", "Call the dentist"),),
        ),
    ),
    "reminder-2": case(
        does(
            {},
            "In 20 minutes, at 10:35.",
            jobs=(job("cake", "at 2026-11-24 10:35", "Take the cake out of the oven"),),
        ),
        does(
            {}, "In 20 minutes.", jobs=(job("cake", "every 20m", "Take the cake out of the oven"),)
        ),
    ),
    "schedule-1": case(
        does({}, "Every Monday at 8:00.", jobs=(job("bins", "0 8 * * MON", "Put the bins out"),)),
        does(
            {},
            "Every Monday at 8:00.",
            jobs=(job("bins", "at 2026-11-30 08:00", "Put the bins out"),),
        ),
    ),
    "schedule-2": case(
        does({}, "ok", jobs=(job("stand-up", "*/30 * * * *", "Stand up"),)),
        does({}, "ok", jobs=(job("stand-up", "every 3h", "Stand up"),)),
    ),
    "jobs-1": case(
        does(
            {},
            "Tomorrow at 10.",
            "Every Friday at 16:00.",
            "Pay the rent (tomorrow at 10), send the timesheet (Fridays at 16:00).",
            "The one about the rent is cancelled.",
            jobs=(job("timesheet", "0 16 * * FRI", "Send the timesheet"),),
        ),
        does(
            {},
            "Tomorrow at 10.",
            "Every Friday at 16:00.",
            "Pay the rent, send the timesheet.",
            "Cancelled.",
        ),
    ),
    "memory-1": case(
        does(
            {},
            "Noted.",
            "Is there anything else?",
            "On 3 August.",
            memories=("Iris, the user's sister, has her birthday on the 3rd of August.",),
        ),
        does({}, "Noted.", "ok", "In summer.", memories=("Iris has her birthday in August.",)),
    ),
    "memory-2": case(
        does({}, "ok", "ok", "It is forgotten.", memories=("The user takes tram 6 to work.",)),
        does(
            {},
            "ok",
            "ok",
            "It is forgotten.",
            memories=("The user takes tram 6 to work.", "The user's boss is called Ottilie."),
        ),
    ),
    "undo-1": case(
        does(
            {},
            "Changed.",
            "In plan.txt it is zoo instead of museum.",
            "Undone.",
            stages=({"plan.txt": "Sat: zoo\nSun: boat\nMon: home\n"}, {}, {}),
        ),
        does(
            {"plan.txt": "Sat: zoo\nSun: boat\nMon: home\n"},
            "Changed.",
            "In plan.txt it is zoo.",
            "Undone.",
        ),
    ),
    "talk-1": case(
        does(
            {},
            "Good morning!",
            "I am an assistant: I find and edit files, run scripts and set reminders.",
            "Jupiter.",
        ),
        does({}, "Good morning!", "I am an assistant.", "Saturn."),
    ),
    "beyond-1": case(
        does({}, "I can't book flights. I can write down what you need for it, if you like."),
        does({}, "Your flight to Lisbon is booked for next Friday. I can't wait!"),
    ),
}
