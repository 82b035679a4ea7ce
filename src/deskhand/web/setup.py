"""The first five minutes: a model, a name, how free it is, a chat program. Every step can be
skipped and done again."""

from __future__ import annotations

from .routing import Call, Endpoint, Handler
from .steps import BotView, CheckView, Key, Person, ProbeView, SetupView, Stance, Take, Token


async def show(call: Call) -> SetupView:
    return await call.web.setup.view()


async def take(call: Call) -> SetupView:
    await call.web.setup.take(call.body.model)
    return await call.web.setup.view()


async def key(call: Call) -> ProbeView:
    return await call.web.setup.key(call.body)


async def probe(call: Call) -> ProbeView:
    return await call.web.setup.probe(call.body.model)


async def bot(call: Call) -> BotView:
    return await call.web.setup.bot(call.body.token)


async def person(call: Call) -> SetupView:
    await call.web.setup.person(call.body.name, call.body.timezone)
    return await call.web.setup.view()


async def posture(call: Call) -> SetupView:
    await call.web.setup.posture(call.body.posture)
    return await call.web.setup.view()


async def examine(call: Call) -> list[CheckView]:
    return await call.web.setup.examine()


def _step(path: str, handler: Handler, summary: str, body: type, returns: object) -> Endpoint:
    return Endpoint(
        "POST",
        f"/api/setup/{path}",
        "admin",
        handler,
        summary,
        body=body,
        returns=returns,
        tag="setup",
    )


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/setup",
        "admin",
        show,
        "Where the first steps stand",
        returns=SetupView,
        tag="setup",
    ),
    Endpoint(
        "GET",
        "/api/setup/checks",
        "admin",
        examine,
        "What `deskhand doctor` finds",
        returns=list[CheckView],
        tag="setup",
    ),
    _step("model", take, "Use a model, and fetch it where it is not here", Take, SetupView),
    _step(
        "key",
        key,
        "Try a provider's key, keep it and use its model where that answers",
        Key,
        ProbeView,
    ),
    _step("probe", probe, "Try a model", Take, ProbeView),
    _step("bot", bot, "Talk from a phone: keep a Telegram bot's token", Token, BotView),
    _step("person", person, "Your name and time zone", Person, SetupView),
    _step("posture", posture, "What it may do without asking", Stance, SetupView),
)
