"""The system beside its conversations: health, status, agents, tools, skills, presets, models."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from ..types.errors import ConfigError
from ..types.health import HealthFact, HealthState
from ..types.marked_texts import mark_text
from .errors import HttpProblem, bad_request, not_found, to_sentence
from .routing import Call, Endpoint
from .views import (
    AgentView,
    ModelsView,
    ModelView,
    PresetView,
    SelectedView,
    SettingsView,
    SkillDraft,
    SkillView,
    StatusView,
    ToolView,
)


class HealthView(msgspec.Struct, frozen=True):
    """`status` is what all components come to. Who is not known here learns no more than that."""

    status: HealthState
    model: str = ""
    version: str = ""
    since: float | None = None
    components: tuple[HealthFact, ...] = ()


class OfAgent(msgspec.Struct, frozen=True):
    """`agent` is one by name; '' for the first."""

    agent: str = ""


class SelectModel(msgspec.Struct, frozen=True):
    """`model_id` may be `provider/name` by itself. `agent`: for this one; '' for all."""

    model_id: str = ""
    provider: str = ""
    agent: str = ""


class ModelQuery(msgspec.Struct, frozen=True):
    q: str = ""


class ModelsFound(msgspec.Struct, frozen=True):
    """`query` is what was looked for."""

    models: list[ModelView]
    query: str


class Setting(msgspec.Struct, frozen=True):
    """One key of the configuration by its dotted path; null goes back to the default."""

    key: str
    value: Any = None


def agents_for(call: Call) -> list[str]:
    """The agents of which this person may know: those to whom they may talk, or might with a
    greater role."""
    theirs = call.grant.agents if call.grant is not None else ()
    return [name for name in call.web.admin.agents if theirs is None or name in theirs]


def require_agent(call: Call) -> str:
    """The agent of the address, else the first that is theirs. Raises HttpProblem 404."""
    there = agents_for(call)
    name = str(call.query.agent) or next(iter(there), "")
    if name not in there:
        raise not_found(mark_text("such agent"))
    return name


async def get_health(call: Call) -> HealthView:
    found = await call.web.admin.health()
    if call.grant is None:
        return HealthView(found.state)
    model = (await get_status(call)).model if agents_for(call) else ""
    return HealthView(found.state, model, found.version, found.since, found.facts)


async def get_metrics(call: Call) -> Response:
    """For owners alone: it tells of everybody's conversations."""
    if "owner" not in call.principal.roles:
        raise HttpProblem(403, "forbidden", "Only an owner may read the metrics.")
    try:
        text = await call.web.admin.metrics()
    except ConfigError as error:
        raise HttpProblem(501, "not_installed", to_sentence(str(error))) from error
    return Response(text, media_type="text/plain; version=0.0.4")


async def get_status(call: Call) -> StatusView:
    there = agents_for(call)
    if not there:
        raise not_found(mark_text("agent that is yours"))
    found = await call.web.admin.status(there[0])
    return msgspec.structs.replace(
        found, agents=there, cron_jobs=len(await call.web.jobs.list_jobs(call.principal))
    )


async def list_agents(call: Call) -> list[AgentView]:
    return [call.web.admin.describe_agent(name) for name in agents_for(call)]


async def list_tools(call: Call) -> list[ToolView]:
    return call.web.admin.tools(require_agent(call))


async def list_skills(call: Call) -> list[SkillView]:
    return await call.web.admin.skills(call.principal, require_agent(call))


async def add_skill(call: Call) -> SkillView:
    return await call.web.admin.add_skill(require_agent(call), call.body)


async def list_presets(call: Call) -> list[PresetView]:
    return call.web.admin.presets()


async def list_models(call: Call) -> ModelsView:
    return await call.web.admin.models()


async def select_model(call: Call) -> SelectedView:
    wanted: SelectModel = call.body
    if not wanted.model_id.strip():
        raise bad_request(
            "No model is named: send `model_id`, and its `provider` where that does not "
            "stand in it."
        )
    name = await _resolve_model(call, wanted)
    await call.web.admin.select_model(wanted.agent, name)
    provider, _, model = name.partition("/")
    return SelectedView("ok", provider, model, call.web.admin.base_url(provider))


async def _resolve_model(call: Call, wanted: SelectModel) -> str:
    """`provider/name`. Clients of agent_computer send each model that they found with OpenRouter as
    its provider."""
    if not wanted.provider:
        return wanted.model_id
    name = f"{wanted.provider}/{wanted.model_id}"
    known = {each.id for each in await call.web.admin.search_models("")}
    return wanted.model_id if wanted.model_id in known and name not in known else name


async def search_models(call: Call) -> ModelsFound:
    return ModelsFound(await call.web.admin.search_models(call.query.q), call.query.q)


async def get_settings(call: Call) -> SettingsView:
    return call.web.admin.settings()


async def set_setting(call: Call) -> SettingsView:
    await call.web.admin.set_setting(call.body.key, call.body.value)
    return call.web.admin.settings()


ENDPOINTS = (
    Endpoint(
        "GET",
        "/metrics",
        "read",
        get_metrics,
        "Get metrics for Prometheus",
        returns=str,
        media="text/plain",
        tag="system",
    ),
    Endpoint(
        "GET",
        "/health",
        "public",
        get_health,
        "Get the health of each component",
        returns=HealthView,
        tag="system",
    ),
    Endpoint(
        "GET", "/api/status", "read", get_status, "Get the status", returns=StatusView, tag="system"
    ),
    Endpoint(
        "GET",
        "/api/agents",
        "read",
        list_agents,
        "List the agents",
        returns=list[AgentView],
        tag="system",
    ),
    Endpoint(
        "GET",
        "/api/tools",
        "read",
        list_tools,
        "List the tools of an agent",
        query=OfAgent,
        returns=list[ToolView],
        tag="system",
    ),
    Endpoint(
        "GET",
        "/api/skills",
        "read",
        list_skills,
        "List the skills of an agent",
        query=OfAgent,
        returns=list[SkillView],
        tag="system",
    ),
    Endpoint(
        "POST",
        "/api/skills",
        "admin",
        add_skill,
        "Write a skill",
        body=SkillDraft,
        query=OfAgent,
        returns=SkillView,
        invalid=422,
        tag="system",
    ),
    Endpoint(
        "GET",
        "/api/presets",
        "read",
        list_presets,
        "List prompt presets",
        returns=list[PresetView],
        tag="system",
    ),
    Endpoint(
        "GET",
        "/api/models",
        "read",
        list_models,
        "List the models",
        returns=ModelsView,
        tag="system",
    ),
    Endpoint(
        "POST",
        "/api/models/select",
        "admin",
        select_model,
        "Use another model",
        body=SelectModel,
        returns=SelectedView,
        invalid=422,
        tag="system",
    ),
    Endpoint(
        "GET",
        "/api/models/search",
        "read",
        search_models,
        "Search the model catalogue by name",
        query=ModelQuery,
        returns=ModelsFound,
        tag="system",
    ),
    Endpoint(
        "GET",
        "/api/settings",
        "admin",
        get_settings,
        "Get the configuration",
        returns=SettingsView,
        tag="system",
    ),
    Endpoint(
        "PATCH",
        "/api/settings",
        "admin",
        set_setting,
        "Set one key of the configuration",
        body=Setting,
        returns=SettingsView,
        tag="system",
    ),
)
