"""The sections of the configuration that rooms above this one are set by: jobs, long work,
budgets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import unquote

import msgspec

from ..net.url import parse_url
from ..types.errors import AddressRefused, ConfigError

HOOK_TIMEOUT_S = 30.0
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token of RFC 9110, section 5.6.2."""


class MqttConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The broker whose messages may set jobs off. `secret` is the name under which its password is
    kept: `deskhand secrets set NAME`."""

    host: str = ""
    port: int = 1883
    username: str = ""
    secret: str = "mqtt"
    tls: bool = False


class HeartbeatConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`every` is how often it is seen whether something is due. `agent` is whose HEARTBEAT.md it
    is, '' the first. `to` is where the answer goes, as in `telegram:12345`; '' is nowhere, and it
    stands in the log."""

    enabled: bool = False
    every: str = "30m"
    agent: str = ""
    to: str = ""


class BackupConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Backups that are made by themselves. `folder` is where, a folder or s3://; '' makes none.
    `schedule` is when, in words as jobs have them or as cron does. So many as `keep` says are kept;
    0 keeps all. With `recipient`, the public key of age, only whoever has the other key can read
    them."""

    folder: str = ""
    schedule: str = "0 3 * * *"
    keep: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 7
    recipient: str = ""


class TracesConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Traces for OpenTelemetry. `endpoint` is where the collector takes OTLP over HTTP; '' sends
    none. `headers_env` is the environment variable with headers for it, as `name=value,name=value`.
    With `content` they have what tools were called with, and how results and answers
    begin."""

    endpoint: str = ""
    headers_env: str = "OTEL_EXPORTER_OTLP_HEADERS"
    content: bool = False


ThemeName = Literal["auto", "dark", "light", "high-contrast", "none"]


class TerminalConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How Deskhand looks in a terminal. `theme` are its colours: `auto` is `dark` or `light`, as
    the background is. `pictures: false` shows their names alone."""

    theme: ThemeName = "auto"
    pictures: bool = True


class JobsConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`enabled: false` runs none. After `storm_starts` crashes within `storm_minutes` all jobs are
    paused: one of them may be the cause. A job at `startup` is skipped once so many of its runs
    were followed by a start at once; 0 never does either. A hook may take `hook_timeout_s`. `mqtt`
    is a broker whose messages set jobs off."""

    enabled: bool = True
    storm_starts: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 3
    hook_timeout_s: Annotated[float, msgspec.Meta(ge=1, le=600)] = HOOK_TIMEOUT_S
    storm_minutes: Annotated[float, msgspec.Meta(gt=0, le=1440)] = 10.0
    mqtt: MqttConfig = MqttConfig()


class DeepWorkConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Long work. `tokens` is what one deep work may use until it is summed up: at the share
    `compact_at` of them, so often as `compactions` says, and then they count anew. After the last
    time `warn_at` is the share at which a person is told that they run low. `nudges` is how often
    it is told to go on while nothing changes, `rounds` how often at all before a person speaks
    again. A goal is looked after for so many rounds and tokens; where a person has written, it
    waits until they have been quiet for `quiet_s`."""

    tokens: Annotated[int, msgspec.Meta(ge=1_000)] = 1_500_000
    compact_at: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.75
    compactions: Annotated[int, msgspec.Meta(ge=0, le=100)] = 5
    warn_at: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.75
    nudges: Annotated[int, msgspec.Meta(ge=0, le=20)] = 2
    rounds: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 200
    goal_rounds: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 20
    goal_tokens: Annotated[int, msgspec.Meta(ge=1_000)] = 500_000
    quiet_s: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 120.0


class SubagentKindConfig(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What differs for sub-agents of one kind."""

    model: str = ""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    steps: Annotated[int, msgspec.Meta(ge=1, le=1_000)] | None = None


SubagentKind = Literal[
    "explore", "research", "browser", "computer", "plan", "code", "general", "teammate"
]


class SubagentsConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sub-agents: how deep one may begin another (0: none at all), how many work at once for one
    conversation and for all, and what each may use. `model` and `temperature` are theirs, where
    they are not to be those of the agent; `kinds` are what differs for one kind. A team has at most
    so many `teammates`; one that has had nothing to do for `teammate_idle_s` shuts down."""

    depth: Annotated[int, msgspec.Meta(ge=0, le=5)] = 3
    per_session: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    at_once: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 50
    steps: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 20
    tokens: Annotated[int, msgspec.Meta(ge=1_000)] = 300_000
    model: str = ""
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    kinds: Mapping[SubagentKind, SubagentKindConfig] = {}
    teammates: Annotated[int, msgspec.Meta(ge=0, le=20)] = 5
    teammate_idle_s: Annotated[float, msgspec.Meta(ge=1, le=30 * 86_400)] = 3_600.0


BudgetPeriod = Literal["day", "month", "ever"]
_KEY = re.compile(r"all|(?:person|agent|job|session)(?::\S.*)?")

MAX_AMOUNT = 10**15
Tokens = Annotated[int, msgspec.Meta(ge=0, le=MAX_AMOUNT)]
Dollars = Annotated[float, msgspec.Meta(ge=0, le=MAX_AMOUNT / 1e6)]


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much may be used: tokens read and written, or US dollars by the prices of the catalogue,
    in a calendar day, a calendar month, or ever. What is not set is not limited; 0 allows
    nothing."""

    tokens_per_day: Tokens | None = None
    tokens_per_month: Tokens | None = None
    tokens: Tokens | None = None
    usd_per_day: Dollars | None = None
    usd_per_month: Dollars | None = None
    usd: Dollars | None = None


BUDGET_FIELDS: dict[str, tuple[Literal["tokens", "usd"], BudgetPeriod]] = {
    "tokens_per_day": ("tokens", "day"),
    "tokens_per_month": ("tokens", "month"),
    "tokens": ("tokens", "ever"),
    "usd_per_day": ("usd", "day"),
    "usd_per_month": ("usd", "month"),
    "usd": ("usd", "ever"),
}


def parse_headers(text: str, name: str) -> dict[str, str]:
    """Headers as the variables of OpenTelemetry have them: `name=value,name=value`, with values
    percent-encoded (https://opentelemetry.io/docs/specs/otel/protocol/exporter/).

    Raises ConfigError with the `name` of the variable, without what stands in it.
    """
    headers = dict[str, str]()
    for each in filter(None, map(str.strip, text.split(","))):
        key, equals, value = each.partition("=")
        key = key.strip()
        value = unquote(value.strip())
        is_name = bool(equals) and _HEADER_NAME.fullmatch(key) is not None
        is_value = value.isascii() and value.isprintable()
        if not is_name or not is_value:
            raise ConfigError(f"{name} must hold headers as name=value,name=value")
        headers[key.lower()] = value
    return headers


def check_traces(config: TracesConfig) -> None:
    """Raises ConfigError for an address that is none."""
    if not config.endpoint:
        return
    try:
        parse_url(config.endpoint)
    except AddressRefused as error:
        raise ConfigError(f"traces.endpoint is {config.endpoint!r}: {error}") from error


def check_budgets(budgets: Mapping[str, Budget]) -> None:
    """Raises ConfigError for a key that names nothing, and for an amount that is no number."""
    for key, budget in budgets.items():
        for field, (unit, _) in BUDGET_FIELDS.items():
            most = getattr(budget, field)
            limit = MAX_AMOUNT if unit == "tokens" else MAX_AMOUNT / 1e6
            if most is not None and not 0 <= most <= limit:
                raise ConfigError(
                    f"budgets: {key}: {field}: {most} is not an amount: write a number such as "
                    "20, or leave it out"
                )
        if not _KEY.fullmatch(key):
            raise ConfigError(
                f"budgets: {key!r} is not a valid budget; write all, person, agent, job or "
                "session, or one of them with a name, such as person:anna"
            )
