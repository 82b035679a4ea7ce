"""The sentences that the server writes, in the language of the reader of the page."""

from __future__ import annotations

import re
import runpy
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from zoneinfo import ZoneInfo

import msgspec
import pytest
from playwright.sync_api import Page, expect

from deskhand.budgets.limit_rules import Limit, LimitStanding, explain_spent
from deskhand.jobs.text import JobForecast, describe_outcome, describe_timing
from deskhand.languages.sentences import say_notice
from deskhand.policy.information_flow import format_sources
from deskhand.policy.rules import Case, Rule, apply_rules
from deskhand.types.identity import Principal
from deskhand.types.jobs import Job, Run
from deskhand.types.labels import Label
from deskhand.types.schedules import describe_schedule, parse_schedule
from deskhand.web.sign_in_pages import REFUSED_PAGE

languages = SimpleNamespace(
    **runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "languages.py"))
)
pytestmark = pytest.mark.timeout(240)
SENTENCES = languages.collect_sentences()
GERMAN: dict[str, str] = msgspec.json.decode((languages.LANGUAGES / "de.json").read_bytes())[
    "sentences"
]
VALUES = {
    "number": "12",
    "numbers": "1, 2, and 3",
    "ordinal": "third",
    "size": "3.4 GB",
    "time": "2027-01-31 17:00",
    "clocks": "08:00 and 18:00",
    "days": "Monday through Friday",
    "month": "March",
    "code": "`notes.md`",
}
"""What stands in a place of this kind. In all others it is the name of the place."""
JOINED = (
    "at 08:00 on Monday, Wednesday, and Friday (UTC)",
    "at 00:00 on December 24 (UTC)",
    "once, at 2027-01-31 17:00 · file inbox",
    "It only reads; it cannot be undone",
    "this conversation has read what Ann wrote, file a and b.txt and 3 more",
    "It answered with nothing.",
    "an own sentence. It only reads",
    "Deep work is off. The tasks stay as they are.\n  • Stopped. Rex. Stopped.",
    "Foo; it only reads. Stopped.",
    "I do not know /foo. Did you mean /stop? /help lists what I know.",
    "This conversation is called “Rex. Max. Stopped”. Stopped.",
    "Deep work is off. The tasks stay as they are. Nothing is running.",
)
NOTICE = """async (texts) => {
  const { serverTexts } = await import("/js/language.js");
  return texts.map((await serverTexts).sayNotice);
}"""
SAY = """async (texts) => {
  const { serverTexts, tServer } = await import("/js/language.js");
  await serverTexts;
  return texts.map((text) => tServer(text));
}"""
FIND = """async (texts) => {
  const { serverTexts } = await import("/js/language.js");
  return texts.map((await serverTexts).findTexts);
}"""


def fill(text: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda at: VALUES.get(at[1].split("_")[-1], f"<{at[1]}>"), text)


def say(page: Page, *texts: str) -> list[str]:
    said: list[str] = page.evaluate(SAY, list(texts))
    return said


def has_pieces(said: str, german: str) -> bool:
    """Whether the fixed pieces of a text stand there one after the other."""
    pieces = re.split(r"\{\w+\}", german)
    return re.fullmatch(".+?".join(map(re.escape, pieces)), said) is not None


def test_every_sentence_comes_back_in_german(german: Page) -> None:
    said = say(german, *map(fill, SENTENCES))
    wrong = {
        text: each
        for text, each in zip(SENTENCES, said, strict=True)
        if not has_pieces(each, GERMAN[text])
    }
    assert wrong == {}


def test_no_sentence_could_be_two(german: Page) -> None:
    """What is whole is looked for before what has places."""
    found: list[list[str]] = german.evaluate(FIND, list(map(fill, SENTENCES)))
    assert {
        text: each
        for text, each in zip(SENTENCES, found, strict=True)
        if (each if "{" in text else each[:1]) != [text]
    } == {}


def test_chats_say_the_same(german: Page) -> None:
    """The page and the server each recognise the sentences by themselves."""
    # Days through days are no days.
    written = [fill(text) for text in SENTENCES if " through {last_days}" not in text] + [*JOINED]
    said: list[str] = german.evaluate(NOTICE, written)
    spoken = [say_notice(each, "de") for each in written]
    differing = {
        text: (page, chat)
        for text, page, chat in zip(written, said, spoken, strict=True)
        if page.replace("\u00a0", ".") != chat
    }
    assert differing == {}


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        ("0 8 * * *", "jeden Tag um 08:00 (Europe/Berlin)"),
        ("30 8,18 * * 1-5", "Montag bis Freitag um 08:30 und 18:30 (Europe/Berlin)"),
        ("0 9 * * 1,3", "Montag und Mittwoch um 09:00 (Europe/Berlin)"),
        ("*/5 * * * *", "jede 5. Minute jeder Stunde (Europe/Berlin)"),
        ("0 * * * *", "zu Beginn jeder Stunde (Europe/Berlin)"),
        ("0 9 1 * *", "am 1. Tag jedes Monats um 09:00 (Europe/Berlin)"),
        ("0 9 L * *", "am letzten Tag jedes Monats um 09:00 (Europe/Berlin)"),
        ("0 0 24 12 *", "am 24. Dezember um 00:00 (Europe/Berlin)"),
        ("0 */2 * * *", "in Minute 0 jeder 2. Stunde (Europe/Berlin)"),
        (
            "0 9-17 * * 1-5",
            "Montag bis Freitag: in Minute 0 jeder Stunde von 9 bis 17 Uhr (Europe/Berlin)",
        ),
        ("every 30m", "alle 30 Minuten"),
        ("every 1h", "jede Stunde"),
        ("startup", "bei jedem Start"),
    ],
)
def test_a_schedule(german: Page, schedule: str, said: str) -> None:
    written = describe_schedule(parse_schedule(schedule, "Europe/Berlin"))
    assert say(german, written) == [said]


def test_what_the_server_puts_together(german: Page) -> None:
    once = Job("a", prompt="b", schedule="at 2027-01-31 17:00", on=("file inbox",))
    case = Case("default", "shell", "host", Principal("owner", ("owner",)), Label())
    rules = (Rule("ask", tool="shell"),)
    label = Label("untrusted", source="https://example.org/\nwhat Ann wrote\nfile a and b.txt")
    written = {
        JobForecast(30, 30, 1234, "like its last 3 runs").summary: (
            "Voraussichtlich: 30 Läufe in 30 Tagen, etwa 37k Tokens"
            " (je 1,2k Tokens, wie seine letzten 3 Läufe)."
        ),
        JobForecast(30, 43_200, 0, "it asks no model").summary: (
            "Voraussichtlich: 43\u00a0200 Läufe in 30 Tagen, keine Tokens (er fragt kein Modell)."
        ),
        describe_timing(once, "UTC"): "einmal, am 31.01.2027, 17:00 · Datei inbox",
        describe_outcome(Run("a", "s", "error", 0.0, said="it was stopped")): (
            "fehlgeschlagen: er wurde gestoppt"
        ),
        apply_rules((), case).reason: (
            "shell würde Befehle auf diesem Rechner ausführen, und keine Regel erlaubt es"
        ),
        apply_rules(rules, case).reason: "Regel 1: ask shell (*)",
        f"this conversation has read {format_sources(label)}": (
            "dieses Gespräch hat https://example.org/, was Ann schrieb, Datei a and b.txt gelesen"
        ),
    }
    assert dict(zip(written, say(german, *written), strict=True)) == written


def test_what_chats_are_answered(german: Page) -> None:
    limit = Limit("agent", "coder", "tokens_per_month", 100, date(2026, 1, 1).toordinal())
    spent = explain_spent(
        LimitStanding(limit, 90, held=5), 20, date(2026, 1, 15).toordinal(), ZoneInfo("UTC")
    )
    written = {
        "morning (on): every 5 minutes; next: 2027-01-31 17:00": (
            "morning (an): alle 5 Minuten; nächster Lauf: 31.01.2027, 17:00"
        ),
        spent: (
            "das Budget des Agenten coder ist aufgebraucht: 90 von 100 Tokens in diesem Monat sind"
            " verbraucht, 5 Tokens sind für laufende Aufrufe reserviert, und dieser Aufruf kann"
            " 20 Tokens verbrauchen. Es beginnt neu am Sonntag, 1. Februar um 00:00 (UTC). Ein"
            " Eigentümer kann noch einmal so viel erlauben mit: deskhand budget lift agent:coder"
            " --per month"
        ),
        "#1234 Ann (my sister) is in Rome (soon forgotten)": (
            "#1234 Ann (my sister) is in Rome (bald vergessen)"
        ),
        "closed: 2027-01-31 17:00: superseded, by #1234": (
            "beendet: 31.01.2027, 17:00: überholt, durch #1234"
        ),
        "Put back: a.txt, b.txt, c.txt and 2 more. `deskhand undo --redo` takes that back.": (
            "Wiederhergestellt: a.txt, b.txt, c.txt und 2 weitere."
            " `deskhand undo --redo` nimmt das zurück."
        ),
        "Deep work: 50 % (2 of 4 tasks); it was stopped; write, and it goes on.": (
            "Gründliche Arbeit: 50 % (2 von 4 Aufgaben); gestoppt; schreib etwas, und es geht"
            " weiter."
        ),
    }
    assert dict(zip(written, say(german, *written), strict=True)) == written


def test_what_is_not_known_stays_as_it_came(german: Page) -> None:
    unknown = [
        "",
        "the owner's own reason",
        "done, or so",
        "paused: one\ntwo",
        "constructor",
        "{name}",
        "every 5 fortnights",
        "at 08:00 on Caturday (UTC)",
    ]
    assert say(german, *unknown) == unknown
    assert say(german, "paused: constructor") == ["angehalten: constructor"]
    assert say(german, "paused: {why_text} <b>") == ["angehalten: {why_text} <b>"]


def test_what_the_api_refuses(german: Page) -> None:
    """It says what an error says as a sentence."""
    refused = "There is no agent 'x'; there are: default."
    assert say(german, refused) == ["Es gibt keinen Agenten 'x'; es gibt: default."]


def test_why_nobody_is_signed_in(german: Page) -> None:
    reason = "The provider&#x27;s word could not be checked: it names nobody."
    refused = REFUSED_PAGE.format(
        title="Not signed in", reason=reason, back="Back", languages="de=Deutsch"
    )
    german.context.route(
        "**/auth/callback",
        lambda route: route.fulfill(status=403, content_type="text/html", body=refused),
    )
    german.goto("/auth/callback")
    expect(german.get_by_role("heading")).to_have_text("Nicht angemeldet")
    expect(german.get_by_role("alert")).to_have_text(
        "Das Wort des Anbieters ließ sich nicht prüfen: es nennt niemanden."
    )
    expect(german.get_by_role("link")).to_have_text("Zurück")
    assert german.title() == "Nicht angemeldet · Deskhand"


def test_no_sentence_takes_long(german: Page) -> None:
    text = "nobody may write on " + "the MCP server a: " * 10_000 + ", and it has read ; " * 10_000
    took_ms: float = german.evaluate(
        """async (text) => {
          const { tServer } = await import("/js/language.js");
          const began = performance.now();
          tServer(text);
          return performance.now() - began;
        }""",
        text,
    )
    assert took_ms < 2_000


def test_in_english_nothing_is_loaded_for_it(page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto("/")
    page.locator("#composer").wait_for()
    assert say(page, "every 5 minutes") == ["every 5 minutes"]
    assert not [url for url in asked if "server-texts" in url or "/languages/" in url]
