"""Implements `web.ports.AdminBackend`: what the page and the API may know and change."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import tzinfo
from importlib.metadata import version
from typing import Any, Literal
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread
import msgspec

from ..agent.state import State
from ..assembly.models import Models, build_catalogue, facts_of, is_small
from ..assembly.prompt_presets import list_presets
from ..assembly.tools import skills_of
from ..assembly.trace_tree import TraceTree
from ..config.first_settings import read_owner_name, store_setting
from ..config.page_edits import edit_config_text, list_writable_keys, write_config_text
from ..gateway.standing_grants import revoke_grant
from ..models.local_servers import find_servers
from ..models.request_fields import SMALL_MODEL_UNSUPPORTED, find_unsupported_fields
from ..models.weights import PROVIDER, WeightsFolder
from ..policy.information_flow import may_see
from ..secrets.inbound_redaction import reject_secrets
from ..skills.skill import Skills
from ..skills.tools import why_held
from ..skills.write import write_skill
from ..store.queries import (
    StandingGrant,
    count_all,
    count_sessions,
    last_event_number,
    standing_grants,
)
from ..supervision.erased_index import Erased, describe_backups, erase_for_good
from ..supervision.queries import owed_messages
from ..tools.approved import bound_from_rows
from ..tools.base import ToolScope
from ..tools.deferred import list_offered_specs
from ..tools.journal import (
    FileVersion,
    JournalEntry,
    MadeFile,
    UndoItem,
    files_of_session,
    versions_of_file,
)
from ..tools.label_marks import load_scope_marks
from ..tools.names import describe_lookalikes
from ..tools.queries import approved_digests
from ..types.diffs import CallDiff, FileDiff
from ..types.errors import ConfigError, Refused, ToolError
from ..types.goals import LongWork
from ..types.health import Health
from ..types.identity import Principal, list_reader_names
from ..types.marked_texts import mark_text
from ..types.options import SessionOptions
from ..web.alert_views import AlertView
from ..web.protocols import AdminBackend
from ..web.views import (
    AgentView,
    ChangeDetail,
    ChangeView,
    CurrentModel,
    DeepWorkLimits,
    ErasedView,
    GrantView,
    HostedProvider,
    LocalModel,
    LocalProvider,
    ModelsView,
    ModelView,
    PinnedModel,
    PlaceView,
    PresetView,
    Price,
    Providers,
    SettingsView,
    SkillDraft,
    SkillView,
    SpanView,
    StatusView,
    ToolView,
    UndoneView,
    VersionView,
)
from ..workspace.diffs import change_kind
from .app import App

log = logging.getLogger(__name__)
SECRET_NAME = re.compile(r"(?:^|_)(?:key|token|secret|password)$", re.IGNORECASE)
_URL_SECRET = re.compile(r"(://(?=[^/\s]{0,999}@)|://[^?\s]{0,999}\?)[^/@\s]+(?=@)?")
LMSTUDIO = "lmstudio"
OPENROUTER = "openrouter"
UNDONE_TEXT = "Restored."
NOT_UNDONE_TEXT = "Not undone: a later change is in the way that you may not read."
TELL_BACKUPS_S = 5.0
MAX_VERSIONS = 100
MAX_MADE = 200
NO_KEY = mark_text("there is no key for its provider yet: deskhand setup")


def _current_model(name: str) -> CurrentModel:
    provider, _, model = name.partition("/")
    return CurrentModel(provider, model)


class RunningAdmin:
    """It implements `web.ports.AdminBackend`."""

    def __init__(self, app: App, models: Models) -> None:
        self._app = app
        self._models = models
        self._started_at = app.parts.clock.now()
        self._config_lock = anyio.Lock()

    @property
    def agents(self) -> Sequence[str]:
        return self._app.settings.agents

    @property
    def zone(self) -> tzinfo:
        return ZoneInfo(self._app.settings.config.timezone)

    async def owner_name(self) -> str:
        settings = self._app.settings
        with suppress(ToolError):  # the agent may have made the file unreadable
            return await anyio.to_thread.run_sync(read_owner_name, settings, settings.agents[0])
        return ""

    async def status(self, agent: str) -> StatusView:
        settings = self._app.settings
        deep = settings.config.deep_work
        steps, _ = self.long_work_limits(agent)
        provider, _, model = next(iter(settings.agent(agent).models), "").partition("/")
        return StatusView(
            status="ok",
            agent=agent,
            model=model,
            provider=provider,
            base_url=self.base_url(provider),
            tools=[tool.name for tool in self.tools(agent)],
            sessions=await count_sessions(self._app.store),
            cron_jobs=0,
            deep_work=DeepWorkLimits(steps, deep.tokens, deep.warn_at),
            version=version("deskhand"),
            agents=list(self.agents),
            started_at=self._started_at,
        )

    def base_url(self, provider: str) -> str:
        """The address of this provider, or '' for an unknown one."""
        settings = self._app.settings
        own = settings.config.providers.get(provider)
        listed = build_catalogue(settings).providers.get(provider)
        if own is not None and own.base_url:
            return own.base_url
        return listed.base_url if listed is not None else ""

    async def health(self) -> Health:
        return await self._app.health()

    async def metrics(self) -> str:
        try:
            from .metrics import Measured, render_metrics  # noqa: PLC0415 -- needs an extra
        except ImportError as error:
            raise ConfigError(
                "metrics need the extra `metrics`: pip install 'deskhand[metrics]'"
            ) from error
        store = self._app.store
        size = 0
        with suppress(OSError):
            size = os.stat(self._app.settings.home.database).st_size  # noqa: PTH116 -- in a loop
        return render_metrics(
            Measured(
                await self._app.health(),
                await count_all(store),
                await owed_messages(store),
                await store.usage_by_model(),
                size,
            )
        )

    async def alerts(self) -> list[AlertView]:
        return [
            AlertView(each.id, each.at, self._app.redact(each.text), each.state)
            for each in await self._app.alerts.latest()
        ]

    async def mark_alerts_seen(self) -> None:
        await self._app.alerts.mark_seen()

    def describe_agent(self, agent: str) -> AgentView:
        config = self._app.settings.agent(agent)
        return AgentView(
            agent,
            list(config.models),
            str(self._app.current.agent(agent).folder),
            config.preset,
            config.thinking or "off",
        )

    def long_work_limits(self, agent: str) -> tuple[int, int]:
        return self._app.current.agent(
            agent
        ).limits.steps, self._app.settings.config.deep_work.tokens

    async def find_long_work(self, session: str) -> LongWork | None:
        return await self._app.features.deep.get_long_work(session)

    def tools(self, agent: str) -> list[ToolView]:
        tools = self._app.current.agent(agent).tools
        now = list_offered_specs(tools, SessionOptions())
        specs = [tool.spec for tool in tools.values()]
        return [
            ToolView(s.name, s.description, s.effect, s.parameters, deferred=s not in now)
            for s in specs
        ]

    def _skills(self, agent: str) -> Skills:
        return skills_of(self._app.settings, agent)

    async def skills(self, principal: Principal, agent: str) -> list[SkillView]:
        found = await anyio.to_thread.run_sync(self._skills(agent).find)
        reach = await self._app.current.agent(agent).workspace.open_scope()
        marks = await load_scope_marks(reach)
        bound = bound_from_rows(await approved_digests(self._app.store))
        found = {
            name: each
            for name, each in found.items()
            if not why_held(each, marks, bound, principal)
        }
        twins = describe_lookalikes(found)
        return [
            SkillView(name, f"{skill.description} {twins.get(name, '')}".rstrip(), skill.source)
            for name, skill in found.items()
        ]

    async def add_skill(self, agent: str, draft: SkillDraft) -> SkillView:
        self._app.settings.agent(agent)
        reject_secrets(
            "the skill", "\n".join((draft.name, draft.description, draft.body)), self._app.redact
        )
        folder = self._app.settings.skills_folder
        await anyio.to_thread.run_sync(
            write_skill, folder, draft.name, draft.description, draft.body
        )
        return SkillView(draft.name, " ".join(draft.description.split()), "shared")

    def presets(self) -> list[PresetView]:
        return [
            PresetView(each.name, each.description)
            for each in list_presets(self._app.settings.home.root / "prompts")
        ]

    async def models(self) -> ModelsView:
        chosen = self._app.settings.agent(self.agents[0]).models
        pinned = [_current_model(name) for name in chosen]
        found = await anyio.to_thread.run_sync(self._list_models)
        providers = Providers(await self._lmstudio(), self._openrouter())
        return ModelsView(
            current=pinned[0] if pinned else CurrentModel("", ""),
            pinned=[PinnedModel(each.model_id, each.model_id, each.provider) for each in pinned],
            providers=providers,
            models=found,
        )

    async def _lmstudio(self) -> LocalProvider:
        """The models of LM Studio, read from its server on this machine or at the configured
        address."""
        answered = await find_servers({LMSTUDIO: self.base_url(LMSTUDIO)})
        names = [name for server in answered for name in server.models]
        return LocalProvider(
            "LM Studio", [LocalModel(name, name) for name in names], bool(answered)
        )

    def _openrouter(self) -> HostedProvider:
        key = bool(self._models.key(OPENROUTER))
        return HostedProvider(
            "OpenRouter", key, "" if key else "There is no key for OpenRouter yet: deskhand setup"
        )

    def _list_models(self) -> list[ModelView]:
        settings = self._app.settings
        found = {name: self._model_view(name) for name in settings.agent(self.agents[0]).models}
        for provider, listed in build_catalogue(settings).providers.items():
            if provider != PROVIDER and (self._models.key(provider) or listed.local):
                for name in listed.models:
                    found.setdefault(f"{provider}/{name}", self._model_view(f"{provider}/{name}"))
        shelf = WeightsFolder(settings.cache_folder / "models")
        for name in shelf.known:
            full = f"{PROVIDER}/{name}"
            why = (
                ""
                if shelf.has(name)
                else f"its weights are not downloaded yet: deskhand model pull {name}"
            )
            found[full] = ModelView(full, PROVIDER, not why, why, name=full)
        return list(found.values())

    def _model_view(self, name: str) -> ModelView:
        price = self.price(name)
        shown = None if price is None else (price.read, price.written)
        window = facts_of(self._app.settings, name).window
        return ModelView(name, name.partition("/")[0], window=window, price=shown, name=name)

    async def select_model(self, agent: str, model: str) -> None:
        self._models.check(model)
        path = ["agents", agent, "models"] if agent else ["defaults", "models"]
        if agent:
            self._app.settings.agent(agent)
        async with self._config_lock:
            await anyio.to_thread.run_sync(store_setting, self._app.settings, path, [model])
            await self._app.current.reload()

    def unsupported_fields(
        self, agent: str, *, thinks: bool | None, temperature: float | None
    ) -> Collection[str]:
        settings = self._app.settings
        model = next(iter(settings.agent(agent).models), "")
        if is_small(settings, model):
            return SMALL_MODEL_UNSUPPORTED
        provider, _, name = model.partition("/")
        own = settings.config.providers.get(provider)
        if thinks is None:
            thinks = (settings.agent(agent).thinking or "off") != "off"
        return find_unsupported_fields(
            build_catalogue(settings),
            provider,
            name,
            own.base_url if own else "",
            thinks=thinks,
            temperature=temperature,
        )

    def may_change_answers(self, agent: str) -> bool:
        hooks = self._app.current.agent(agent).hooks
        return hooks is not None and hooks.has("before_agent_end")

    async def tool_scope(self, agent: str) -> ToolScope:
        return await self._app.current.agent(agent).workspace.open_scope()

    async def search_models(self, wanted: str) -> list[ModelView]:
        return await anyio.to_thread.run_sync(self._search_catalogue, wanted.casefold().split())

    def _search_catalogue(self, words: list[str]) -> list[ModelView]:
        listed = build_catalogue(self._app.settings).providers
        names = [f"{provider}/{name}" for provider, each in listed.items() for name in each.models]
        found = [name for name in names if all(word in name.casefold() for word in words)]
        ready = {each.id: each for each in self._list_models()}
        return [
            ready.get(name)
            or msgspec.structs.replace(self._model_view(name), ready=False, why_not=NO_KEY)
            for name in found
        ]

    def settings(self) -> SettingsView:
        settings = self._app.settings
        config = dict(msgspec.to_builtins(settings.config))
        return SettingsView(
            _redact_config(config),
            str(settings.file),
            list(settings.warnings),
            list(list_writable_keys()),
        )

    async def set_setting(self, key: str, value: Any) -> None:
        async with self._config_lock:
            before = await anyio.to_thread.run_sync(self._store_setting, key, value)
            try:
                await self._app.current.reload()
            except (ConfigError, OSError):
                await anyio.to_thread.run_sync(write_config_text, self._app.settings, before)
                await self._app.current.try_reload()
                raise

    def _store_setting(self, key: str, value: Any) -> str:
        return write_config_text(
            self._app.settings, edit_config_text(self._app.settings, key, value)
        )

    async def erase(self, principal: Principal, session: str) -> ErasedView:
        app = self._app
        if any(each.session == session for each in await app.store.open_sessions()):
            await app.door.stop(session, principal)
        now = app.parts.clock.now()
        gone, erased = await erase_for_good(app.store, principal, session, now)
        n = await last_event_number(app.store, session)
        for recorded in await app.store.events(session, n - 1):
            app.feed.publish(session, recorded)
        await self._tell_backups(erased)
        return ErasedView(gone.events, gone.memories, gone.kept)

    async def _tell_backups(self, erased: Erased) -> None:
        """For a bucket that does not answer at once, nobody waits."""
        with anyio.move_on_after(TELL_BACKUPS_S):
            said = await anyio.to_thread.run_sync(
                describe_backups, self._app.settings, erased, abandon_on_cancel=True
            )
            if said:
                log.info("%s", said)

    async def grants(self, principal: Principal) -> list[GrantView]:
        found = await standing_grants(self._app.store, principal)
        return [self._grant_view(each) for each in found]

    async def revoke_grant(self, principal: Principal, id_: str) -> GrantView:
        return self._grant_view(await revoke_grant(self._app.store, principal, id_))

    def _grant_view(self, grant: StandingGrant) -> GrantView:
        return GrantView(
            id=grant.id,
            verdict=grant.verdict,
            agent=grant.agent,
            tool=grant.tool,
            arguments=self._app.redact(grant.arguments),
            at=grant.at,
            by=grant.by,
        )

    async def list_changes(
        self, principal: Principal, session: str, before: int, limit: int
    ) -> list[ChangeView]:
        found = await self._app.effects.timeline(principal, session, before, limit)
        undone = {each.n: each.undoes for each in found}
        # An undo can be redone, but a redo cannot be undone again: it is the change once more.
        for each in found:
            if each.undoes is not None and each.undoes not in undone:
                undone[each.undoes] = (await self._app.effects.get(principal, each.undoes)).undoes
        for n, each in enumerate(found):
            if not await self._app.diffs.may_see_effect(principal, each):
                found[n] = msgspec.structs.replace(each, count=0)
        return [
            self._change_view(each, each.undoes is not None and undone[each.undoes] is not None)
            for each in found
        ]

    def _change_view(self, entry: JournalEntry, redone: bool) -> ChangeView:
        can: Literal["undo", "redo", ""] = ""
        if not redone and entry.undone_at is None:
            can = "undo" if entry.undoes is None else "redo"
        return ChangeView(
            n=entry.n,
            at=entry.at,
            session=entry.session,
            agent=entry.agent,
            person=entry.person,
            tool=entry.tool,
            what=self._app.redact(entry.what),
            count=entry.count,
            can=can,
            undoes=entry.undoes,
            undone_at=entry.undone_at,
        )

    async def get_change(
        self, principal: Principal, number: int, limit: int
    ) -> ChangeDetail | None:
        try:
            entry = await self._app.effects.get(principal, number)
        except Refused:
            return None
        items = await self._app.effects.items(entry, limit)
        shown = await self._app.diffs.visible_items(principal, entry, items)
        if len(shown) < len(items):
            entry = msgspec.structs.replace(entry, count=len(shown))
        places = [self._place_view(item) for item in shown]
        return ChangeDetail(self._change_view(entry, False), places)

    def _place_view(self, item: UndoItem) -> PlaceView:
        kept = item.before is None or item.before[0] in "dlk" or item.blob is not None
        return PlaceView(self._app.redact(item.display_name), change_kind(item), kept)

    async def diff_of_change(self, principal: Principal, number: int) -> CallDiff:
        entry = await self._app.effects.get(principal, number)
        return self._redact_diff(await self._app.diffs.diff_change(principal, entry))

    async def diff_of_call(
        self, principal: Principal, session: str, n: int, call_id: str
    ) -> CallDiff:
        return self._redact_diff(await self._app.diffs.diff_call(principal, session, n, call_id))

    def _redact_diff(self, found: CallDiff) -> CallDiff:
        hide = self._app.redact
        files = (
            FileDiff(hide(each.place), each.did, hide(each.diff), hide(each.why))
            for each in found.files
        )
        return CallDiff(found.done, tuple(files), found.more)

    async def list_versions(self, principal: Principal, agent: str, path: str) -> list[VersionView]:
        found = await self._versions(principal, agent, path)
        shown = [
            each
            for each in found
            if await self._app.diffs.visible_items(principal, each.entry, (each.item,))
        ]
        redone = {each.entry.undoes for each in found if each.entry.undone_at is None}
        return [self._version_view(each, each.entry.n in redone) for each in shown]

    async def _versions(self, principal: Principal, agent: str, path: str) -> list[FileVersion]:
        scope = await self.tool_scope(agent)
        file = (scope.files.roots[0][0], path)
        return await versions_of_file(self._app.store, principal, agent, file, MAX_VERSIONS)

    def _version_view(self, version: FileVersion, redone: bool) -> VersionView:
        view = self._change_view(version.entry, redone)
        after = version.item.after
        return VersionView(
            n=view.n,
            at=view.at,
            session=view.session,
            person=view.person,
            tool=view.tool,
            did=change_kind(version.item),
            can=view.can,
            kept=after is not None and after[0] == "f",
            undone_at=view.undone_at,
        )

    async def read_version(self, principal: Principal, agent: str, path: str, number: int) -> bytes:
        for each in await self._versions(principal, agent, path):
            if each.entry.n == number:
                return await self._app.diffs.read_version(principal, each)
        raise Refused(mark_text("there is no such version"))

    async def list_made(self, session: str) -> list[MadeFile]:
        scope = await self.tool_scope(session.partition("/")[0])
        folder = scope.files.roots[0][0]
        return await files_of_session(self._app.store, session, folder, MAX_MADE)

    async def undo(self, principal: Principal, number: int, force: bool) -> UndoneView:
        effects = self._app.effects
        done = await effects.undo(principal, await effects.get(principal, number), force=force)
        hide = self._app.redact
        if not may_see(
            done.label, list_reader_names(principal)
        ):  # it may name what somebody else has changed since
            return UndoneView(
                done.undo, UNDONE_TEXT if done.undo is not None else NOT_UNDONE_TEXT, [], []
            )
        left = [hide(each.place) for each in done.left]
        return UndoneView(done.undo, hide(done.words), [hide(each) for each in done.back], left)

    def price(self, model: str) -> Price | None:
        facts = facts_of(self._app.settings, model)
        provider = model.partition("/")[0]
        listed = build_catalogue(self._app.settings).providers.get(provider)
        if facts.input_usd or facts.output_usd:
            return Price(facts.input_usd, facts.output_usd, facts.cached_usd or facts.input_usd)
        free = provider in (PROVIDER, "scripted") or (listed is not None and listed.local)
        return Price(0.0, 0.0, 0.0) if free else None

    def build_prompt(self, state: State) -> tuple[str, ...]:
        return tuple(self._app.current.agent_of(state.session).context.blocks(state))

    async def trace(self, session: str) -> list[SpanView]:
        tree = TraceTree(self._app.store, session, self._app.redact)
        spans = [*await tree.read(), *tree.open_spans()]
        return msgspec.convert(spans, list[SpanView], from_attributes=True)


def _redact_config(config: Any) -> Any:
    """Takes keys out: people sometimes write them into an address or a name."""
    if isinstance(config, Mapping):
        return {
            name: "[secret]"
            if value and SECRET_NAME.search(name) and isinstance(value, str)
            else _redact_config(value)
            for name, value in config.items()
        }
    if isinstance(config, list | tuple):
        return [_redact_config(each) for each in config]
    return _URL_SECRET.sub(r"\1[secret]", config) if isinstance(config, str) else config


_: type[AdminBackend] = RunningAdmin
