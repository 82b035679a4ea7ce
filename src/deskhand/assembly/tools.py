"""The tools of an agent, by the settings: what it may not use, it does not see."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from ..config.config import Settings, workspace_of
from ..models.catalogue import parse_model_name, read_catalogue
from ..policy.profiles import (
    BROWSER_TOOLS,
    CORE_TOOLS,
    DEFERRED_TOOLS,
    DESKTOP_TOOLS,
    Offered,
    is_explicitly_offered,
    is_name_matched,
    is_offered,
)
from ..skills.manage import ManageSkill
from ..skills.run import RunSkill
from ..skills.skill import BUNDLED, Skills, SkillSource
from ..skills.tools import skill_tools
from ..tools import (
    context,
    conversation_tools,
    extract,
    files,
    folders,
    kv,
    network,
    plan,
    shell,
    symbols,
    task_board,
    tasks,
)
from ..tools.base import Tool
from ..tools.deferred import TOOL_SEARCH, defer_tools, estimate_schema_tokens, make_schemas
from ..tools.image_gen import ImageProvider, make_image_tool
from ..tools.paths import Allowed
from ..tools.process import make_process_tools
from ..tools.program.run_program import make_program_tools
from ..tools.react import react
from ..tools.render import find_browser
from ..tools.search_web import make_web_search_tool
from ..tools.send_file import SendFile
from ..tools.tiers import make_further_tiers
from ..tools.web import WebFetch
from ..types.errors import ConfigError
from ..types.identity import OWN_SURFACES
from ..types.people import People
from ..types.programs import REHEARSE_PROGRAM, RUN_PROGRAM, SURVEY_FILES
from ..users.tool import ManageUsers
from .models import facts_of, is_small
from .plugins import Plugins, load_plugins

SMALL_WINDOW_TOKENS = 16_000
"""Tokens of a window in which all tools and a conversation have room. They take about 1,400, and
5,300 once all are loaded."""
FOREIGN_TOOLS_TOKENS = 2_000
"""What tools that are not ours may take of each request; where they take more together, they are
deferred."""

SMALL_MODEL_TOOLS = frozenset({RUN_PROGRAM, REHEARSE_PROGRAM, SURVEY_FILES})
"""What only small models are offered."""

_BUNDLED = Allowed(str(BUNDLED.resolve()))


def skill_sources(settings: Settings, agent: str) -> tuple[SkillSource, ...]:
    """Where the skills of an agent are looked for, the strongest last."""
    shared = SkillSource("shared", settings.skills_folder, links=True)
    return (
        SkillSource("bundled", BUNDLED),
        shared,
        SkillSource("agent", workspace_of(settings, agent), "skills"),
    )


def skills_of(settings: Settings, agent: str, tried: Path | None = None) -> Skills:
    """The skills that an agent may read; with those in the folder `tried`, one may have any
    name."""
    sources = skill_sources(settings, agent)
    if tried is None:
        return Skills(sources, settings.skill_patterns(agent))
    more = SkillSource("tried", tried, links=True)
    return Skills((*sources, more), (*settings.skill_patterns(agent), *Skills((more,)).find()))


def skill_folders(settings: Settings, agent: str, skills: Skills) -> tuple[Allowed, ...]:
    """The folders of skills outside the workspace, to be read and run from: no others than the
    agent may read."""
    if settings.skill_patterns(agent) != ("*",):
        folders = [skill.folder for skill in skills.find().values() if skill.source != "agent"]
        return tuple(Allowed(str(folder.resolve())) for folder in folders if folder.is_dir())
    own = str(settings.skills_folder)
    if not os.path.isdir(own):  # noqa: PTH112 -- asked before every tool, and half the cost
        return (_BUNDLED,)
    return _BUNDLED, Allowed(os.path.realpath(own))


def make_tools(
    settings: Settings,
    agent: str,
    skills: Skills,
    beside: Sequence[Tool] = (),
    people: People | None = None,
    plugins: Sequence[Tool] = (),
) -> dict[str, Tool]:
    """The agent's tools by name, in the order in which the model is shown them. `beside` are tools
    of ours that are not made here."""
    offered = _offered_tools(settings, agent)
    chosen = settings.offered_tools(agent)
    small = any(is_small(settings, model) for model in settings.agent(agent).models)
    known = builtin_tools(settings, agent, skills, people)
    own = (tool for tool in (*known, *beside) if is_offered(offered, tool.spec.name))
    own = (tool for tool in own if small or tool.spec.name not in SMALL_MODEL_TOOLS)
    browses = may_browse(settings, agent)
    own = (tool for tool in own if browses or tool.spec.name not in BROWSER_TOOLS)
    sees = settings.agent(agent).desktop
    own = (tool for tool in own if sees or tool.spec.name not in DESKTOP_TOOLS)
    theirs = (tool for tool in plugins if is_offered(chosen, tool.spec.name))
    return {tool.spec.name: tool for tool in (*own, *theirs)}


def may_browse(settings: Settings, agent: str) -> bool:
    """Whether this agent may use web pages: as the settings say; where they say nothing, where
    Chromium is installed."""
    chosen = settings.agent(agent).browser
    return bool(find_browser()) if chosen is None else chosen


def with_tool_search(
    settings: Settings, agent: str, tools: dict[str, Tool], theirs: Collection[str]
) -> dict[str, Tool]:
    """The tools of an agent, those deferred that most conversations never use: so each request is
    shorter. `theirs` are names of those that are not ours."""
    usual = _offered_tools(settings, agent)
    wanted = settings.agent(agent).deferred_tools
    if is_name_matched(TOOL_SEARCH, usual.deny) or is_small(
        settings, next(iter(settings.agent(agent).models), "")
    ):
        return tools  # our protocol for small models tells them of none
    if wanted is not None:
        return defer_tools(
            tools,
            frozenset(
                name for name in tools if is_name_matched(name, wanted) and name not in CORE_TOOLS
            ),
        )
    later = {
        name for name in tools if name in DEFERRED_TOOLS and not is_explicitly_offered(usual, name)
    }
    later |= {
        name
        for name, tool in tools.items()
        if tool.spec.group and not is_explicitly_offered(usual, name)
    }
    further = [name for name in tools if name in theirs and name not in (*usual.tools, *usual.also)]
    if (
        sum(map(estimate_schema_tokens, make_schemas({name: tools[name] for name in further})))
        > FOREIGN_TOOLS_TOKENS
    ):
        later.update(further)
    return defer_tools(tools, frozenset(later))


def reserved_tool_names(
    settings: Settings, agent: str, skills: Skills, beside: Sequence[Tool] = ()
) -> set[str]:
    """The names that no other tool may have, whether or not this agent is offered theirs."""
    return {
        TOOL_SEARCH,
        *(tool.spec.name for tool in (*builtin_tools(settings, agent, skills), *beside)),
    }


def _offered_tools(settings: Settings, agent: str) -> Offered:
    """What is offered: to a model that has no room beside all tools only those that everybody
    needs, unless somebody chose."""
    config = settings.agent(agent)
    offered = settings.offered_tools(agent)
    first = next(iter(config.models), "")
    chosen = config.profile or config.tools not in (None, ("*",))
    if (
        chosen
        or is_small(settings, first)
        or facts_of(settings, first).window >= SMALL_WINDOW_TOKENS
    ):
        return offered
    return msgspec.structs.replace(offered, profile="small")


def builtin_tools(
    settings: Settings, agent: str, skills: Skills, people: People | None = None
) -> tuple[Tool, ...]:
    """All that we bring ourselves, allowed or not."""
    config = settings.agent(agent)
    return (
        *files.TOOLS,
        *folders.TOOLS,
        *symbols.TOOLS,
        *extract.TOOLS,
        shell.make_shell_tool(
            wide=config.sandbox is False, timeout_s=config.shell_timeout_s or shell.TIMEOUT_S
        ),
        *_background_tools(settings, wide=config.sandbox is False),
        *conversation_tools.TOOLS,
        *plan.TOOLS,
        *tasks.TOOLS,
        *task_board.TOOLS,
        *context.TOOLS,
        conversation_tools.SendMessage(OWN_SURFACES),
        SendFile(OWN_SURFACES),
        react,
        *kv.TOOLS,
        WebFetch(settings.config.web_fetch, make_further_tiers()),
        make_web_search_tool(
            settings.config.web_search, lambda variable: settings.environment.get(variable, "")
        ),
        *_image_tools(settings),
        *network.TOOLS,
        *make_program_tools(settings.config.timezone),
        *skill_tools(skills),
        RunSkill(skills),
        ManageSkill(skills),
        ManageUsers(people),
    )


def _image_tools(settings: Settings) -> tuple[Tool, ...]:
    """`image_gen`, where the settings name a model for it. Raises ConfigError for one that nobody
    has."""
    config = settings.config.image_gen
    if not config.model:
        return ()
    provider, name = parse_model_name(config.model)
    own = settings.config.providers.get(provider)
    listed = read_catalogue().providers.get(provider)
    base = config.url or (own.base_url if own else "") or (listed.base_url if listed else "")
    if not base:
        raise ConfigError(f"image_gen.url is missing: {provider!r} has no address that is known")
    variables = [config.key_env, own.key_env if own else "", *(listed.keys if listed else ())]
    keys = (settings.environment.get(variable, "") for variable in variables if variable)
    key = next(filter(None, keys), "")
    return (make_image_tool(ImageProvider(provider, name, base, key, config.size)),)


def _background_tools(settings: Settings, *, wide: bool) -> tuple[Tool, ...]:
    limits = settings.config.processes
    return make_process_tools(wide=wide, usual_s=limits.timeout_s, longest_s=limits.longest_s)


def load_configured_plugins(
    settings: Settings, known: Plugins | None = None, beside: Sequence[Tool] = ()
) -> Plugins:
    """The plugins that the configuration names, each tool under a name that we do not have:
    `beside` are tools of ours that are not made here. Those that are `known` are not loaded
    again."""
    first = settings.agents[0]
    names = reserved_tool_names(settings, first, skills_of(settings, first), beside)
    return load_plugins(settings, names, known or Plugins())
