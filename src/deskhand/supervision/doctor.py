"""Probes that do what they ask about, each with the exact remedy. `PROBES` is the list; a room adds
its own to it."""

from __future__ import annotations

import errno
import os
import shutil
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import anyio
import anyio.to_thread
import msgspec
from anyio.abc import ByteStream

from ..assembly.models import Models, build_catalogue
from ..assembly.speech import SpeechEngines
from ..assembly.workspace_tools import find_all_tools
from ..computer.desktop.host import INSTALL_COMMAND as DESKTOP
from ..computer.desktop.host import is_installed as is_desktop_installed
from ..computer.desktop.screen import find_missing as find_missing_for_screen
from ..config.clock import SystemClock
from ..config.config import Settings, workspace_path
from ..config.database import database_name, has_database, open_store
from ..config.mcp_servers import fill_variables
from ..gateway.audit_anchor import read_anchors
from ..gateway.channel_loader import Unopened, open_channels
from ..models.catalogue import parse_model_name
from ..models.weights import PROVIDER as EMBEDDED
from ..net.client import Net
from ..sandbox.choose import open_sandbox
from ..secrets.proxy_keys import HAS_CRYPTOGRAPHY
from ..secrets.redaction import open_secrets
from ..secrets.secrets import SecretEntry
from ..speech.base import Use
from ..speech.settings import OFF
from ..store.blobs import Blobs
from ..tools.convert import INSTALL_COMMAND as WEB
from ..tools.convert import LIBRARIES
from ..tools.engines import ENGINES
from ..tools.render import INSTALL_COMMAND as CHROMIUM
from ..tools.render import find_browser
from ..types.errors import ConfigError, DeskhandError, SandboxUnavailable
from ..types.folders import make_private_folder
from ..types.marked_texts import mark_text
from ..users.users import open_people
from ..workspace.scope import SandboxProvider
from .site_packages import describe_unexpected_pth, find_unexpected_pth
from .start_log import read_last_start, read_startup_error

Level = Literal["good", "note", "bad"]
PROBE_S = 20.0
REACH_TIMEOUT_S = 5.0
MCP_PROBLEM = mark_text("the MCP server {name}: {problem_text}")
MIN_FREE_BYTES = 500_000_000
BUILT_AT = 1_790_000_000.0
"""A clock that shows an earlier time is wrong: this code did not exist then."""


class DoctorFinding(msgspec.Struct, frozen=True):
    """What a probe found. `bad` keeps something from working. `remedy` is what to type; `fix` does
    it."""

    level: Level
    text: str
    remedy: str = ""
    fix: Callable[[], None] | None = None


ProbeFunction = Callable[[Settings], Awaitable[Sequence[DoctorFinding]]]


class DoctorProbe(msgspec.Struct, frozen=True):
    name: str
    run: ProbeFunction


async def run_probes(
    settings: Settings, probes: Sequence[DoctorProbe] | None = None
) -> list[tuple[str, DoctorFinding]]:
    """Run the probes, one after the other. A probe that does not come back is a finding too."""
    found: list[tuple[str, DoctorFinding]] = []
    for probe in PROBES if probes is None else probes:
        try:
            with anyio.fail_after(PROBE_S):
                found += [(probe.name, finding) for finding in await probe.run(settings)]
        except TimeoutError:
            found.append(
                (
                    probe.name,
                    DoctorFinding(
                        "bad",
                        mark_text("no result within {limit_number} s").format(
                            limit_number=f"{PROBE_S:.0f}"
                        ),
                    ),
                )
            )
        except (DeskhandError, OSError) as error:
            found.append((probe.name, DoctorFinding("bad", str(error))))
    return found


async def _probe_home(settings: Settings) -> list[DoctorFinding]:
    root = settings.home.root
    if not root.is_dir():
        remedy = "deskhand init"
        return [
            DoctorFinding(
                "bad",
                mark_text("{root} does not exist").format(root=root),
                remedy,
                lambda: make_private_folder(root),
            )
        ]
    try:
        with tempfile.NamedTemporaryFile(dir=root, prefix=".doctor-") as file:
            file.write(b"x")
            os.fsync(file.fileno())
    except OSError as error:
        remedies = {
            errno.EACCES: f"sudo chown -R $(id -u) {root}",
            errno.EROFS: f"findmnt -T {root}",
        }
        said = mark_text("{root} cannot be written: {error}").format(
            root=root, error=error.strerror
        )
        return [DoctorFinding("bad", said, remedies.get(error.errno or 0, ""))]
    return [
        DoctorFinding("good", mark_text("{root} can be written").format(root=root)),
        *_probe_permissions(settings),
    ]


def _probe_permissions(settings: Settings) -> list[DoctorFinding]:
    found = []
    for path in (settings.home.root, settings.home.env):
        if path.exists() and path.stat().st_mode & 0o077:
            mode = 0o700 if path.is_dir() else 0o600

            def close(path: Path = path, mode: int = mode) -> None:
                path.chmod(mode)

            found.append(
                DoctorFinding(
                    "note",
                    mark_text("others on this machine can read {path}").format(path=path),
                    f"chmod {mode:o} {path}",
                    close,
                )
            )
    return found


async def _probe_disk(settings: Settings) -> list[DoctorFinding]:
    there = next(
        path for path in (settings.home.root, *settings.home.root.parents) if path.exists()
    )
    free = shutil.disk_usage(there).free
    if free < MIN_FREE_BYTES:
        return [
            DoctorFinding(
                "bad",
                mark_text("only {free_size} are free").format(free_size=f"{free / 1e6:.0f} MB"),
                mark_text("free some space: du -xh {folder} | sort -h | tail").format(folder=there),
            )
        ]
    return [
        DoctorFinding(
            "good",
            mark_text("{free_size} are free").format(free_size=f"{free / 1e9:.1f} GB"),
        )
    ]


async def _probe_config(settings: Settings) -> list[DoctorFinding]:
    where = str(settings.file)
    if not settings.file.exists():
        where = mark_text("{file} (not there: defaults hold)").format(file=where)
    notes = [
        DoctorFinding("note", warning, f"$EDITOR {settings.file}") for warning in settings.warnings
    ]
    return notes or [DoctorFinding("good", where)]


async def _probe_database(settings: Settings) -> list[DoctorFinding]:
    path = settings.home.database
    if not has_database(settings):
        return [DoctorFinding("good", mark_text("no conversations yet"))]
    store = open_store(settings)
    try:
        damage = store.check_integrity()
        events, breaks = await store.audit(read_anchors(settings.home.anchors))
    finally:
        await store.close()
    if damage:
        return [
            DoctorFinding(
                "bad",
                mark_text("damaged: {damage}").format(damage=damage[0]),
                mark_text("restore a backup of {path}").format(path=path),
            )
        ]
    if breaks:
        return [
            DoctorFinding(
                "bad",
                mark_text("the log was changed: {session}: {why_text}").format(
                    session=breaks[0].session, why_text=breaks[0].why
                ),
                "deskhand audit verify",
            )
        ]
    if settings.config.store:
        said = mark_text(
            "{database}: valid; the hash chain of {events_number} events is intact"
        ).format(database=database_name(settings), events_number=events)
    else:
        said = mark_text("valid; the hash chain of {events_number} events is intact").format(
            events_number=events
        )
    return [DoctorFinding("good", said)]


async def _probe_people(settings: Settings) -> list[DoctorFinding]:
    path = settings.home.database
    if not has_database(settings):
        return [DoctorFinding("good", mark_text("only you, on this machine"))]
    store = open_store(settings)
    try:
        people = open_people(store, SystemClock(), dict, dict)
        if why := people.health():
            return [
                DoctorFinding(
                    "bad",
                    why,
                    mark_text("restore a backup of {path}").format(path=path)
                    if people.is_broken()
                    else "deskhand pair list",
                )
            ]
        users = await people.users()
    finally:
        await store.close()
    known = sum(bool(user.identities) for user in users)
    return [
        DoctorFinding(
            "good",
            mark_text("{users_number} users, {known_number} of them known on a channel").format(
                users_number=len(users), known_number=known
            ),
        )
    ]


async def _probe_channels(settings: Settings) -> list[DoctorFinding]:
    """Whether each has what it needs; the platforms are not asked."""
    opened = open_channels(settings, Blobs(settings.home.blobs), SystemClock())
    found = [each for each in opened if settings.config.channels[each.name].enabled]
    if not found:
        return [DoctorFinding("good", mark_text("none; deskhand channels add adds one"))]
    return [
        DoctorFinding("bad", each.why, f"deskhand channels add {each.kind}")
        if isinstance(each, Unopened)
        else DoctorFinding(
            "good", mark_text("{channel} has what it needs").format(channel=each.name)
        )
        for each in found
    ]


async def _probe_models(settings: Settings) -> list[DoctorFinding]:
    names = dict.fromkeys(
        model for agent in settings.agents for model in settings.agent(agent).models
    )
    if not names:
        return [
            DoctorFinding(
                "bad",
                mark_text("no model is chosen; `deskhand model list` shows them"),
                "deskhand model use provider/name",
            )
        ]
    return [await _probe_model(settings, name) for name in names]


async def _probe_model(settings: Settings, name: str) -> DoctorFinding:
    """Ask the provider for its list of models: that needs the address, the network and the key to
    be right."""
    models = Models(settings)
    try:
        missing = models.check(name)
        provider, _ = parse_model_name(name)
    except DeskhandError as error:
        return DoctorFinding("bad", f"{name}: {error}", "deskhand model list")
    if missing:
        return DoctorFinding("bad", f"{name}: {missing}", "deskhand model list")
    if provider == EMBEDDED:
        return DoctorFinding(
            "good", mark_text("{model}: its weights are downloaded").format(model=name)
        )
    catalogue = build_catalogue(settings)
    own = settings.config.providers.get(provider)
    if provider not in catalogue.providers:
        return DoctorFinding("good", mark_text("{model}: built in").format(model=name))
    found = catalogue.provider(provider)
    url = (own.base_url if own else "") or found.base_url
    key = models.key(provider)
    try:
        status = await fetch_status(f"{url.rstrip('/')}/models", key, found.quirks.auth)
    except (OSError, ValueError, TimeoutError) as error:
        why = mark_text("no answer in time") if isinstance(error, TimeoutError) else str(error)
        start = (
            mark_text("start it, or set providers.{provider}.base_url").format(provider=provider)
            if found.local
            else mark_text("check the network")
        )
        return DoctorFinding(
            "bad",
            mark_text("{model}: {url} cannot be reached: {why_text}").format(
                model=name, url=url, why_text=why
            ),
            start,
        )
    if status in (401, 403):
        variable = own.key_env if own and own.key_env else next(iter(found.keys), "")
        return DoctorFinding(
            "bad",
            mark_text("{model}: the key was rejected").format(model=name),
            mark_text("put the right {variable_name} into {file}").format(
                variable_name=variable, file=settings.home.env
            ),
        )
    said = (
        mark_text("{model}: reachable, the key is accepted")
        if key and status == 200
        else mark_text("{model}: reachable")
    )
    return DoctorFinding("good", said.format(model=name))


async def fetch_status(url: str, key: str, auth: str) -> int:
    """The status of a GET, within REACH_S. Raises OSError, TimeoutError, ValueError."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    with anyio.fail_after(REACH_TIMEOUT_S):
        stream: ByteStream
        connect = anyio.connect_tcp  # noqa: TID251 -- the addresses of providers are the words of a person
        try:
            if parts.scheme == "https":
                stream = await connect(
                    host, port, tls=True, ssl_context=ssl.create_default_context()
                )
            else:
                stream = await connect(host, port)
        except (anyio.BrokenResourceError, anyio.EndOfStream) as error:
            raise OSError(mark_text("the connection was closed")) from error
        async with stream:
            header = f"Authorization: Bearer {key}" if auth == "bearer" else f"{auth}: {key}"
            lines = [f"GET {parts.path or '/'} HTTP/1.1", f"Host: {host}", "Connection: close"]
            lines += [header, "anthropic-version: 2023-06-01"] if key else []
            await stream.send("\r\n".join([*lines, "", ""]).encode())
            try:
                answer = await stream.receive(1024)
            except (anyio.BrokenResourceError, anyio.EndOfStream) as error:
                raise OSError(mark_text("it closed the connection without an answer")) from error
    fields = answer.split(b" ", 2)
    if not fields[0].startswith(b"HTTP/") or len(fields) < 2 or not fields[1].isdigit():
        raise ValueError(mark_text("the server there does not speak HTTP"))
    return int(fields[1])


async def _probe_sandbox(settings: Settings) -> list[DoctorFinding]:
    """Open the sandbox, which tries to break out of itself."""
    try:
        proven = await open_sandbox()
    except SandboxUnavailable as error:
        return [DoctorFinding("bad", str(error), "sudo apt-get install bubblewrap")]
    held = proven.verdicts[-1]
    return [
        DoctorFinding(
            "good",
            mark_text("{sandbox} works: all {count_number} attempts to break out failed").format(
                sandbox=held.sandbox, count_number=len(held.probes)
            ),
        )
    ]


async def _probe_secrets(settings: Settings) -> list[DoctorFinding]:
    """Whether each value is where it should be."""
    known = await anyio.to_thread.run_sync(partial(_read_secrets, settings))
    entries, problem = known
    if problem:
        return [DoctorFinding("bad", problem, "deskhand secrets list")]
    if not entries:
        return [
            DoctorFinding(
                "good",
                mark_text(
                    "no secrets are stored; to store one for commands: deskhand secrets set NAME"
                ),
            )
        ]
    bare = [name for name, entry in entries.items() if not entry.rules]
    if bare:
        remedy = f"deskhand secrets rule {bare[0]} HOST"
        return [
            DoctorFinding(
                "note",
                mark_text("{count_number} secrets are stored; no command may use {names}").format(
                    count_number=len(entries), names=", ".join(bare)
                ),
                remedy,
            )
        ]
    if not HAS_CRYPTOGRAPHY:
        why = mark_text(
            "{count_number} secrets are stored; commands can use them only with "
            "http:// addresses, which are sent as https"
        ).format(count_number=len(entries))
        return [DoctorFinding("note", why, "pip install 'deskhand[secrets]'")]
    return [
        DoctorFinding(
            "good",
            mark_text("{count_number} secrets are stored; the proxy adds them to requests").format(
                count_number=len(entries)
            ),
        )
    ]


def _read_secrets(settings: Settings) -> tuple[dict[str, SecretEntry], str]:
    known = open_secrets(settings)
    try:
        entries = known.read_entries()
    except ConfigError as error:
        return {}, str(error)
    known.list_secrets()
    return entries, known.problem


async def _probe_mcp(settings: Settings) -> list[DoctorFinding]:
    """Whether its MCP servers can be started; none is."""
    servers = {name: each for name, each in settings.config.mcp.items() if each.enabled}
    if not servers:
        said = mark_text("no MCP servers are set up; to add one: deskhand mcp add NAME -- COMMAND")
        return [DoctorFinding("good", said)]
    if find_spec("mcp") is None:
        why = mark_text(
            "{count_number} MCP servers are set up, and what connects them is not installed"
        ).format(count_number=len(servers))
        return [DoctorFinding("bad", why, "pip install 'deskhand[mcp]'")]
    findings = []
    for name, server in servers.items():
        try:
            command = fill_variables(server.command, settings.environment)
            for text in (server.url, *server.args, *server.env.values(), *server.headers.values()):
                fill_variables(text, settings.environment)
        except ConfigError as error:
            findings.append(
                DoctorFinding(
                    "bad",
                    MCP_PROBLEM.format(name=name, problem_text=error),
                )
            )
            continue
        if command and shutil.which(command) is None:
            missing = mark_text("there is no program {program}").format(program=repr(command))
            why = MCP_PROBLEM.format(name=name, problem_text=missing)
            findings.append(DoctorFinding("bad", why, f"deskhand mcp test {name}"))
    good = DoctorFinding(
        "good",
        mark_text("{count_number} MCP servers can be started").format(count_number=len(servers)),
    )
    return findings or [good]


async def _probe_tools(settings: Settings) -> list[DoctorFinding]:
    """What is wrong with the Python files in workspaces that give tools. They are loaded in the
    sandbox to find out."""
    provider = SandboxProvider(open_sandbox)
    findings = []
    count = 0
    for agent in settings.agents:
        found = await find_all_tools(workspace_path(settings, agent), provider)
        count += len(found.tools)
        findings += [
            DoctorFinding(
                "bad",
                mark_text("agent {agent}: {problem_text}").format(
                    agent=agent, problem_text=problem
                ),
                f"deskhand tools --agent {agent}",
            )
            for problem in found.problems
        ]
    if not count:
        said = mark_text("there are no tools of your own; to add some: deskhand tools add FILE")
    elif count == 1:
        said = mark_text("1 tool of your own can be used")
    else:
        said = mark_text("{count_number} tools of your own can be used").format(count_number=count)
    return findings or [DoctorFinding("good", said)]


async def _probe_packages(settings: Settings) -> list[DoctorFinding]:
    found = await anyio.to_thread.run_sync(find_unexpected_pth)
    if found:
        return [
            DoctorFinding("bad", describe_unexpected_pth(each), f"less {each}") for each in found
        ]
    return [DoctorFinding("good", mark_text("nothing unknown is run when Python starts"))]


async def _probe_desktop(settings: Settings) -> list[DoctorFinding]:
    names = ", ".join(name for name in settings.agents if settings.agent(name).desktop)
    if not names:
        return [DoctorFinding("good", mark_text("no agent may use the windows of this machine"))]
    if not is_desktop_installed():
        return [
            DoctorFinding("bad", mark_text("desktops cannot be read: the extra [desktop]"), DESKTOP)
        ]
    if settings.config.desktop.screen == "virtual":
        if missing := find_missing_for_screen():
            said = mark_text("agents have no screen of their own: something is not installed")
            return [DoctorFinding("bad", said, f"sudo apt-get install {' '.join(missing)}")]
        return [
            DoctorFinding(
                "good", mark_text("a screen of its own for {agents}").format(agents=names)
            )
        ]
    if not settings.started_with.get("DBUS_SESSION_BUS_ADDRESS"):
        said = mark_text("{agents} may use a desktop, and Deskhand is not started from one").format(
            agents=names
        )
        return [DoctorFinding("bad", said, "deskhand desktop start")]
    return [
        DoctorFinding(
            "good",
            mark_text("{agents} may use the desktop that Deskhand is started from").format(
                agents=names
            ),
        )
    ]


async def _probe_starts(settings: Settings) -> list[DoctorFinding]:
    error = read_startup_error(settings.home)
    began = read_last_start(settings.home)
    if error is not None:
        why = mark_text("`deskhand serve` crashed at {at}: {kind}: {error}").format(
            at=error.time, kind=error.type, error=error.message
        )
        return [DoctorFinding("bad", why, f"less {settings.home.startup_error}")]
    if began is None:
        return [
            DoctorFinding(
                "good",
                mark_text(
                    "`deskhand serve` was never started; Deskhand answers only while a "
                    "terminal is open"
                ),
            )
        ]
    when = datetime.fromtimestamp(began, ZoneInfo(settings.config.timezone)).strftime(
        "%Y-%m-%d %H:%M"
    )
    return [
        DoctorFinding(
            "good", mark_text("`deskhand serve` last started at {at_time}").format(at_time=when)
        )
    ]


async def _probe_clock(settings: Settings) -> list[DoctorFinding]:
    if SystemClock().now() < BUILT_AT:
        return [
            DoctorFinding("bad", mark_text("the clock is wrong"), "sudo timedatectl set-ntp true")
        ]
    zone = settings.config.timezone
    return [
        DoctorFinding("good", mark_text("plausible; times are shown in {zone}").format(zone=zone))
    ]


async def _probe_search(settings: Settings) -> list[DoctorFinding]:
    chosen = settings.config.web_search
    engine = ENGINES[chosen.engine]
    variable = (chosen.key_env or engine.key_env) if engine.key_env else ""
    meanwhile = (
        f"; {mark_text('until then, DuckDuckGo is used')}"
        if chosen.fallback and chosen.engine != "duckduckgo"
        else ""
    )
    if variable and not settings.environment.get(variable, "").strip():
        return [
            DoctorFinding(
                "note",
                mark_text("{engine} has no key").format(engine=engine.title) + meanwhile,
                mark_text("put {variable_name} into {file}").format(
                    variable_name=variable, file=settings.home.env
                ),
            )
        ]
    if chosen.engine == "searxng" and not chosen.url:
        remedy = "deskhand config set web_search.url http://127.0.0.1:8888"
        return [DoctorFinding("note", mark_text("SearXNG has no address") + meanwhile, remedy)]
    return [
        DoctorFinding("good", mark_text("{engine} searches the web").format(engine=engine.title))
    ]


async def _probe_documents(settings: Settings) -> list[DoctorFinding]:
    """Nothing of it is needed for the rest to work."""
    missing = [name for name in (*LIBRARIES, "curl_cffi") if find_spec(name) is None]
    if missing:
        said = mark_text(
            "PDF files, web pages and sites that refuse programs cannot be read: the "
            "extra [web] is not installed"
        )
        found = [DoctorFinding("note", said, WEB)]
    else:
        found = [
            DoctorFinding(
                "good", mark_text("PDF files, office documents and web pages can be read")
            )
        ]
    if program := find_browser():
        return [
            *found,
            DoctorFinding(
                "good",
                mark_text("pages that need scripts are rendered by {program}").format(
                    program=program
                ),
            ),
        ]
    return [
        *found,
        DoctorFinding(
            "note",
            mark_text("pages that need scripts are not rendered: Chromium is not installed"),
            CHROMIUM,
        ),
    ]


VOICE_TEXTS: tuple[tuple[Use, str, str], ...] = (
    (
        "hear",
        mark_text("voice messages are listened to: {engine}"),
        mark_text("voice messages are not listened to: {problem_text}"),
    ),
    (
        "say",
        mark_text("voice messages are answered by voice: {engine}"),
        mark_text("voice messages are not answered by voice: {problem_text}"),
    ),
)


async def _probe_voice(settings: Settings) -> list[DoctorFinding]:
    """Whether voice messages are heard and answered; no engine is begun for that."""
    blobs = Blobs(settings.home.blobs)
    engines = SpeechEngines(lambda: settings, SandboxProvider(), Net(), blobs)
    found = []
    for use, works, is_off in VOICE_TEXTS:
        problem = engines.find_problem(use)
        chosen = getattr(engines.config, use)
        if not problem:
            found.append(DoctorFinding("good", works.format(engine=chosen or "local")))
        elif chosen in ("", OFF):
            hint = "" if chosen else "deskhand voice pull"
            found.append(DoctorFinding("note", is_off.format(problem_text=problem), hint))
        else:
            found.append(DoctorFinding("bad", problem, "deskhand voice list"))
    return found


PROBES: tuple[DoctorProbe, ...] = (
    DoctorProbe("home", _probe_home),
    DoctorProbe("disk", _probe_disk),
    DoctorProbe("configuration", _probe_config),
    DoctorProbe("database", _probe_database),
    DoctorProbe("people", _probe_people),
    DoctorProbe("channels", _probe_channels),
    DoctorProbe("models", _probe_models),
    DoctorProbe("sandbox", _probe_sandbox),
    DoctorProbe("documents", _probe_documents),
    DoctorProbe("search", _probe_search),
    DoctorProbe("secrets", _probe_secrets),
    DoctorProbe("mcp", _probe_mcp),
    DoctorProbe("tools", _probe_tools),
    DoctorProbe("packages", _probe_packages),
    DoctorProbe("desktop", _probe_desktop),
    DoctorProbe("voice", _probe_voice),
    DoctorProbe("serve", _probe_starts),
    DoctorProbe("clock", _probe_clock),
)
