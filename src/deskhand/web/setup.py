"""The first five minutes: a model, a name, how free it is, a chat program. Every step can be
skipped and done again."""

from __future__ import annotations

from .routing import Call, Endpoint, Handler
from .setup_views import (
    CheckView,
    ChosenMode,
    ConnectedView,
    Key,
    NewChannel,
    Person,
    ProbeView,
    SetupView,
    Take,
)


async def get_setup(call: Call) -> SetupView:
    return await call.web.setup.view()


async def choose_model(call: Call) -> SetupView:
    await call.web.setup.choose_model(call.body.model)
    return await call.web.setup.view()


async def add_provider(call: Call) -> ProbeView:
    return await call.web.setup.add_provider(call.body)


async def probe_model(call: Call) -> ProbeView:
    return await call.web.setup.probe_model(call.body.model)


async def connect_channel(call: Call) -> ConnectedView:
    return await call.web.setup.connect_channel(call.body)


async def set_owner(call: Call) -> SetupView:
    await call.web.setup.set_owner(call.body.name, call.body.timezone)
    return await call.web.setup.view()


async def set_permission_mode(call: Call) -> SetupView:
    await call.web.setup.set_permission_mode(call.body.permission_mode)
    return await call.web.setup.view()


async def run_checks(call: Call) -> list[CheckView]:
    return await call.web.setup.run_checks()


def _step_endpoint(
    path: str, handler: Handler, summary: str, body: type, returns: object
) -> Endpoint:
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
        get_setup,
        "Get the state of the first setup",
        returns=SetupView,
        tag="setup",
    ),
    Endpoint(
        "GET",
        "/api/setup/checks",
        "admin",
        run_checks,
        "Run the checks of `deskhand doctor`",
        returns=list[CheckView],
        tag="setup",
    ),
    _step_endpoint(
        "model", choose_model, "Use a model, and download it first if needed", Take, SetupView
    ),
    _step_endpoint(
        "key",
        add_provider,
        "Try a provider's key; save it and use its model if that answers",
        Key,
        ProbeView,
    ),
    _step_endpoint("probe", probe_model, "Try a model", Take, ProbeView),
    _step_endpoint(
        "channel",
        connect_channel,
        "Try a channel, and save it if it works",
        NewChannel,
        ConnectedView,
    ),
    _step_endpoint("person", set_owner, "Set your name and time zone", Person, SetupView),
    _step_endpoint(
        "permission-mode",
        set_permission_mode,
        "Set what agents may do without asking",
        ChosenMode,
        SetupView,
    ),
)
