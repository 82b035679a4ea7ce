"""Jobs over HTTP: each sees and changes their own, and a hook is opened by its signature alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.jobs.blueprints import BLUEPRINTS
from deskhand.jobs.triggers.signatures import sign_webhook
from deskhand.models.base import Item, Request
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.people import Identity
from deskhand.users.user_cache import OWNER
from deskhand.web import compat_computer

from .served import Client, Served, serving

DAILY = "---\nschedule: daily 09:00\ndescription: look around\n---\n\nLook around."


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as running:
        yield running


async def ann(served: Served) -> Client:
    """A member."""
    await served.people.add_user("ann", "member", Identity("telegram", "7"))
    return (await served.token("ann", ("read", "chat")))[1]


async def make(client: Client, **draft: Any) -> Any:
    status, made = await client.ask("POST", "/api/jobs", draft)
    assert status == 201, made
    return made


def said(answer: tuple[int, Any]) -> tuple[int, str]:
    return answer[0], answer[1]["error"]["message"]


async def test_a_job_from_its_file_to_its_end(served: Served) -> None:
    made = await make(served.owner, name="look", text=DAILY)
    assert made["job"]["when"] == "at 09:00 every day (UTC)" and made["job"]["state"] == "on"
    assert made["job"]["next_at"] and made["job"]["last_result"] == "has not run yet"
    assert (
        made["forecast"].startswith("Forecast: 30 runs in 30 days;")
        and made["prompt"] == "Look around."
    )
    (row,) = [each for each in await served.owner.get("/api/jobs") if each["name"] == "look"]
    assert row == made["job"]
    changed = await served.owner.ask(
        "PUT", "/api/jobs/look", {"text": DAILY.replace("09:00", "10:00")}
    )
    assert changed[1]["job"]["when"] == "at 10:00 every day (UTC)"
    assert (await served.owner.ask("POST", "/api/jobs/look/disable"))[1]["state"] == "off"
    assert (await served.owner.ask("POST", "/api/jobs/look/enable"))[1]["enabled"] is True
    status, started = await served.owner.ask("POST", "/api/jobs/look/run")
    assert status == 202 and started["slot"]
    (theirs,) = [
        each for each in (await served.owner.get("/api/cron"))["jobs"] if each["id"] == "look"
    ]
    assert (
        theirs["prompt_preview"] == "Look around."
        and theirs["next_run"]
        and theirs["run_count"] in (0, 1)
    )
    (run,) = await served.owner.get("/api/jobs/look/runs?limit=5")
    assert run["slot"] == started["slot"]
    assert (await served.owner.get("/api/status"))["cron_jobs"] == len(
        await served.owner.get("/api/jobs")
    )
    assert (await served.owner.ask("DELETE", "/api/jobs/look"))[0] == 204
    assert (await served.owner.ask("GET", "/api/jobs/look"))[0] == 404
    status, undone = await served.owner.ask("POST", "/api/jobs/look/undo")
    assert status == 200 and undone["job"]["when"] == "at 10:00 every day (UTC)"
    assert (await served.owner.ask("POST", "/api/jobs/look/redo"))[1] == {
        "name": "look",
        "job": None,
    }
    assert said(await served.owner.ask("POST", "/api/jobs/nothing/undo"))[1].startswith(
        "There is no change of the job"
    )


async def test_nobody_sees_or_changes_what_is_anothers(served: Served) -> None:
    member = await ann(served)
    await make(served.owner, name="mine", text=DAILY)
    hers = await make(member, name="hers", text=DAILY)
    assert hers["job"]["person"] == "ann"
    assert [each["name"] for each in await member.get("/api/jobs")] == ["hers"]
    for method, path, body in (
        ("GET", "/api/jobs/mine", None),
        ("GET", "/api/jobs/mine/runs", None),
        ("PUT", "/api/jobs/mine", {"text": DAILY}),
        ("DELETE", "/api/jobs/mine", None),
        *(("POST", f"/api/jobs/mine/{what}", None) for what in ("run", "enable", "disable")),
        ("POST", "/api/cron/mine/run", None),
        ("POST", "/api/cron/mine/toggle", None),
    ):
        assert said(await member.ask(method, path, body)) == (404, "There is no such job here."), (
            path
        )
    unknown = await member.ask("GET", "/api/jobs/none")
    assert said(unknown) == (404, "There is no such job here."), (
        "one that is not there looks the same"
    )
    for text, why in (
        (DAILY.replace("---\ns", "---\nfor: owner\ns"), "in nobody else's"),
        (DAILY.replace("---\ns", "---\nkind: chore\nchore: clean\ns"), "nly an owner"),
        (DAILY.replace("---\ns", "---\nto: telegram:999\ns"), "in which you take part"),
        (DAILY.replace("---\ns", "---\nmodel: openai/dear\ns"), "not configured"),
        (DAILY.replace("---\ns", "---\nsession: web:owner:notes\ns"), "must be `isolated`"),
        (DAILY.replace("daily 09:00", "every 1s"), "at most once in 60 seconds"),
    ):
        status, words = said(await member.ask("POST", "/api/jobs", {"name": "x", "text": text}))
        assert status == 403 and why in words, (text, words)
    own = await make(member, name="chat", text=DAILY, to="web:jobs")
    assert own["job"]["to"] == "web:jobs", "a conversation of her own"
    names = {each["name"] for each in await served.owner.get("/api/jobs")}
    assert {"mine", "hers", "chat"} <= names, "an owner sees all"
    changed = await served.owner.ask("PUT", "/api/jobs/hers", {"text": DAILY})
    assert changed[1]["job"]["person"] == "ann", "whose it is stays"


async def test_an_owner_resumes_paused_jobs(served: Served) -> None:
    member = await ann(served)
    await make(served.owner, name="mine", text=DAILY)
    assert await served.owner.get("/api/scheduler") == {"paused": "", "resumable": False}
    await served.app.features.jobs.api.pause(OWNER, "on holiday")
    paused = {"paused": "on holiday", "resumable": True}
    assert await member.get("/api/scheduler") == paused
    assert (await served.owner.get("/api/jobs/mine"))["job"]["state"] == "paused: on holiday"
    assert (await member.ask("POST", "/api/scheduler/resume"))[0] == 403
    assert await served.owner.get("/api/scheduler") == paused
    assert (await served.owner.ask("POST", "/api/scheduler/resume"))[1] == {
        "paused": "",
        "resumable": False,
    }


async def test_an_owner_sees_what_reached_nobody(served: Served) -> None:
    member = await ann(served)
    alerts = served.app.alerts
    await served.app.store.change(await alerts.alert_owners("k", "It burns."))
    health = await member.get("/health")
    (fact,) = [each for each in health["components"] if each["name"] == "alerts"]
    assert (
        health["status"] == "degraded"
        and fact["state"] == "degraded"
        and "burns" not in str(health)
    )
    assert (await member.ask("GET", "/api/alerts"))[0] == 403
    (alert,) = await served.owner.get("/api/alerts")
    assert (alert["text"], alert["state"]) == ("It burns.", "unreached")
    assert (await served.owner.ask("POST", "/api/alerts/seen"))[0] == 204
    assert [each["state"] for each in await served.owner.get("/api/alerts")] == ["seen"]
    assert "alerts" not in [each["name"] for each in (await member.get("/health"))["components"]]


async def test_a_reader_only_reads(served: Served) -> None:
    await served.people.add_user("eve", "viewer")
    _, viewer = await served.token("eve", ("read",))
    assert await viewer.get("/api/jobs") == []
    assert (await viewer.ask("POST", "/api/jobs", {"name": "x", "text": DAILY}))[0] == 403
    assert (await served.client().ask("GET", "/api/jobs"))[0] == 401


@pytest.mark.parametrize(
    ("draft", "why"),
    [
        ({"name": "../../x", "text": DAILY}, "cannot name a job"),
        ({"name": "..", "text": DAILY}, "cannot name a job"),
        ({"name": "x", "text": "no front matter"}, "front matter"),
        ({"name": "x", "text": "---\nschedule: 61 * * * *\n---\n\nx"}, "minute"),
        ({"name": "x", "text": "---\nschedule: 0 0 31 2 *\n---\n\nx"}, "no month"),
        ({"name": "x", "text": "---\nschedule: at 2001-01-01 00:00\n---\n\nx"}, "past"),
        ({"name": "x", "text": "---\non: file ../x\n---\n\nx"}, "not a path in the workspace"),
        (
            {"name": "x", "text": "---\nhooks: {prerun: ../../x}\nschedule: daily 09:00\n---\n\nx"},
            "within the folder",
        ),
        (
            {"name": "x", "text": "---\nagent: nobody\nschedule: daily 09:00\n---\n\nx"},
            "no agent 'nobody'",
        ),
        ({"name": "x", "text": "---\nschedule: daily 09:00\n---\n\n" + "x" * 60_000}, "too long"),
        ({"name": "x"}, "either `text`"),
        ({"text": DAILY, "blueprint": "reminder"}, "either `text`"),
        ({"blueprint": "none"}, "there are: morning-brief"),
        (
            {"blueprint": "reminder", "slots": {"text": "x", "when": "daily 09:00"}},
            "where it is said",
        ),
        (
            {"blueprint": "reminder", "slots": {"text": "x", "when": "soon"}, "to": "web:a"},
            "'when' (when) cannot be 'soon'",
        ),
        ({"blueprint": "morning-brief", "to": "telegram"}, "channel:chat"),
    ],
)
async def test_what_cannot_be_says_why(served: Served, draft: dict[str, Any], why: str) -> None:
    for path in ("/api/jobs", "/api/blueprints/preview"):
        if path.endswith("preview") and "past" in why:
            continue  # the clock alone knows
        status, words = said(await served.owner.ask("POST", path, draft))
        assert status == 400 and why in words, words


async def test_a_taken_name_stays(served: Served) -> None:
    member = await ann(served)
    await make(member, name="look", text=DAILY)
    for name in ("look", "LOOK"):
        status, words = said(
            await served.owner.ask("POST", "/api/jobs", {"name": name, "text": DAILY})
        )
        assert status == 403 and "already" in words


async def test_blueprints_are_drawn_previewed_and_made(served: Served) -> None:
    found = await served.owner.get("/api/blueprints")
    assert [each["name"] for each in found] == [each.name for each in BLUEPRINTS]
    assert found[0]["form"]["properties"]["time"]["default"] == "07:30"
    assert found[0]["when"].startswith("at 07:30 every day")
    assert found[0]["forecast"].startswith("Forecast: 30 runs in 30 days")
    assert all(each["when"] and each["forecast"] for each in found)
    assert found[-1]["forecast"] == "It uses no tokens: it asks no model."
    draft = {
        "blueprint": "reminder",
        "slots": {"text": "call Ann", "when": "every 2h"},
        "to": "web:jobs",
    }
    before = len(await served.owner.get("/api/jobs"))
    status, shown = await served.owner.ask("POST", "/api/blueprints/preview", draft)
    assert status == 200 and shown["name"] == "reminder" and shown["prompt"] == "call Ann"
    assert shown["command"] == (
        "deskhand jobs add --blueprint reminder --slot 'text=call Ann' --slot 'when=every "
        "2h' --to web:jobs"
    )
    assert shown["forecast"] == "Forecast: 360 runs in 30 days, and no tokens (it asks no model)."
    assert len(shown["next_at"]) == 3 and len(await served.owner.get("/api/jobs")) == before, (
        "nothing is made"
    )
    assert [(await make(served.owner, **draft))["job"]["name"] for _ in range(2)] == [
        "reminder",
        "reminder-2",
    ]


async def test_a_reminder_stands_in_a_conversation_of_the_page(served: Served) -> None:
    member = await ann(served)
    draft = {
        "blueprint": "reminder",
        "slots": {"text": "call Bob", "when": "every 2h"},
        "to": "web:jobs",
    }
    made = await make(member, **draft)
    assert (await member.ask("POST", f"/api/jobs/{made['job']['name']}/run"))[0] == 202
    with anyio.fail_after(30):
        while not (found := (await member.get("/api/sessions"))["sessions"]):
            await anyio.sleep(0.02)
    assert [(each["name"], each["title"]) for each in found] == [("jobs", "call Bob")], (
        "begun by nobody's message"
    )
    (event,) = await member.get("/api/sessions/jobs/log")
    assert event["event"]["reply"] == "call Bob"
    assert [each["name"] for each in (await served.owner.get("/api/sessions"))["sessions"]] == [
        "default~web:ann:jobs"
    ]


async def test_a_hook_is_opened_by_its_signature_alone(served: Served) -> None:
    made = await make(served.owner, name="door", text="---\non: webhook\n---\n\nSee who is there.")
    assert made["hook"] == "/api/hooks/door" and "closed: it has no secret" in made["trouble"][0]
    await make(served.owner, name="other", text=DAILY)
    body, now = b'{"door": "open"}', served.app.parts.clock.now()
    stranger = served.client()

    async def send(name: str, headers: dict[str, str], data: bytes = body) -> tuple[int, Any]:
        async with served.http.post(
            f"{served.url}/api/hooks/{name}", data=data, headers=headers
        ) as answer:
            return answer.status, msgspec.json.decode(await answer.read())

    good = sign_webhook("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", "msg_1", now, body)
    refusals = {said(await send(name, good)) for name in ("door", "other", "none")}
    served.app.secrets.set("webhook.door", "whsec_YSBzZWNyZXQgb2Ygb3Vycw==", "file")
    refusals |= {
        said(await send("door", headers))
        for headers in ({}, sign_webhook("whsec_d3Jvbmc=", "msg_1", now, body))
    }
    refusals.add(
        said(
            await send(
                "door", sign_webhook("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", "msg_1", now - 600, body)
            )
        )
    )
    assert len(refusals) == 1, "a stranger learns nothing of which jobs there are"
    ((status, words),) = refusals
    assert status == 401 and "deskhand jobs show" in words
    assert await send("door", good) == (202, {"new": True})
    assert await send("door", good) == (202, {"new": False}), "a replay is the same slot"
    assert (await send("door", good, b"x" * 300_000))[0] == 413
    assert (await send("door", {**good, "origin": "https://evil.example"}))[0] == 403, (
        "no page of another site"
    )
    assert (await send("door", {**good, "cookie": "deskhand=x"}))[0] == 403
    assert (await stranger.ask("POST", "/api/jobs", {"name": "x", "text": DAILY}))[0] == 401
    runs = await served.owner.get("/api/jobs/door/runs")
    assert len(runs) == 1 and runs[0]["slot"].startswith("webhook:")
    assert (await served.owner.get("/api/jobs/door"))["trouble"] == []


class Waits(ScriptedModel):
    """A model that answers when it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = anyio.Event()

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        await self.go_on.wait()
        async for item in super().reply(request):
            yield item


async def test_agent_computers_clients_read_that_a_long_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compat_computer, "ANSWER_S", 0.1)
    model = Waits()
    async with serving(tmp_path, model) as served:
        await make(served.owner, name="look", text=DAILY)
        status, ran = await served.owner.ask("POST", "/api/cron/look/run")
        model.go_on.set()
    assert (status, ran["status"], ran["job"]) == (200, "running", "look")


async def test_agent_computers_clients_see_jobs_that_only_say_a_text(served: Served) -> None:
    text = DAILY.replace("---\ns", "---\nkind: deliver\nto: web:jobs\ns")
    await make(served.owner, name="greet", text=text)
    listed = (await served.owner.get("/api/cron"))["jobs"]
    (theirs,) = [each for each in listed if each["id"] == "greet"]
    assert theirs["prompt_preview"] == "Look around."
    assert all(each["prompt_preview"] for each in listed), "chores are our own work"
