"""Lists the tools of an agent without opening the log or driving anything."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import anyio
import msgspec

from ..assembly.plugins import FailedPlugin
from ..assembly.tools import (
    load_configured_plugins,
    make_tools,
    reserved_tool_names,
    skills_of,
    with_tool_search,
)
from ..assembly.workspace_tools import find_all_tools
from ..config.clock import RandomIds, SystemClock
from ..config.config import Settings, workspace_of
from ..config.statements import load_statements
from ..customtools.tools import make_file_tools
from ..gateway.dispatch import Dispatch
from ..gateway.feed import Feed
from ..gateway.machine_rounds import MachineRounds
from ..gateway.publisher import EventPublisher
from ..gateway.streamed_replies import Drafts
from ..net.client import Net
from ..policy.profiles import is_offered
from ..sandbox.choose import open_sandbox
from ..secrets.redaction import Redactor, open_secrets
from ..store.blobs import Blobs
from ..store.sqlite import SqliteStore
from ..tools.base import Tools
from ..users.owner_alerts import Alerts
from ..users.reader_languages import ReaderLanguages
from ..workspace.scope import SandboxProvider
from .feature_wiring import FeatureWiring
from .host import RunningHost
from .reload import Current
from .tool_wiring import ToolWiring


class Inventory(msgspec.Struct, frozen=True):
    """The tools of an agent, as it has them while Deskhand runs. `failed` are plugins that could
    not be loaded, `problems` says what is wrong with Python files of its workspace."""

    tools: Tools
    failed: tuple[FailedPlugin, ...] = ()
    problems: tuple[str, ...] = ()


def load_inventory(settings: Settings, agent: str) -> Inventory:
    """The tools of this agent. Raises ConfigError."""
    skills = skills_of(settings, agent)
    with _open_features(settings) as works:
        beside = works.tools(agent)
        plugins = load_configured_plugins(settings, beside=beside)
        names = reserved_tool_names(settings, agent, skills, (*beside, *plugins.tools))
        workspace = workspace_of(settings, agent)
        found = anyio.run(find_all_tools, workspace, works.host.sandbox)
        own, problems = make_file_tools(found, names, works.own_tools.processes)
        offered = settings.offered_tools(agent)
        tools = make_tools(settings, agent, skills, beside, plugins=plugins.tools)
        tools |= {tool.spec.name: tool for tool in own if is_offered(offered, tool.spec.name)}
        tools = with_tool_search(
            settings, agent, tools, {tool.spec.name for tool in (*own, *plugins.tools)}
        )
    return Inventory(tools, plugins.failed, problems)


@contextmanager
def _open_features(settings: Settings) -> Iterator[FeatureWiring]:
    """The features over an empty log, only to list their tools."""
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="deskhand-tools-") as folder:
        store = SqliteStore(Path(folder) / "log.sqlite3", load_statements())
        try:
            dispatch = Dispatch(store, _never, clock, _never)
            alerts = Alerts(store, clock, ())
            redact = Redactor(settings)
            host = RunningHost(
                store=store,
                blobs=Blobs(Path(folder)),
                sandbox=SandboxProvider(open_sandbox, clock.now),
                net=Net(),
                clock=clock,
                ids=RandomIds(),
                secrets=open_secrets(settings),
                redact=redact,
                dispatch=dispatch,
                publisher=EventPublisher(Feed(), Drafts(store, {}, clock, _never), redact),
                alerts=alerts,
                rounds=MachineRounds(store, clock, alerts, lambda: 0),
                languages=ReaderLanguages(store, lambda: ""),
                current=Current(settings, clock, redact),
                people=None,
            )
            yield FeatureWiring(host, _never, _never, _never, ToolWiring(host))
        finally:
            anyio.run(store.close)


def _never(*given: Any) -> NoReturn:
    raise AssertionError("nobody is driven here")
