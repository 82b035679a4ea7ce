"""What can be set for jobs."""

from __future__ import annotations

from typing import Annotated

import msgspec

TIMEOUT_S = 30.0


class MqttConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """The broker whose messages may set jobs off. `secret` is the name under which its password is kept: `deskhand
    secrets set NAME`."""

    host: str = ""
    port: int = 1883
    username: str = ""
    secret: str = "mqtt"
    tls: bool = False


class HeartbeatConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`every` is how often it is seen whether something is due. `agent` is whose HEARTBEAT.md it is, '' the first. `to`
    is where the answer goes, as in `telegram:12345`; '' is nowhere, and it stands in the log."""

    enabled: bool = False
    every: str = "30m"
    agent: str = ""
    to: str = ""


class JobsConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`enabled: false` runs none. After `storm_starts` crashes within `storm_minutes` all jobs are paused: one of them
    may be the cause. A job at `startup` is skipped once so many of its runs were followed by a start at once; 0 never
    does either. A hook may take `hook_timeout_s`. `mqtt` is a broker whose messages set jobs off."""

    enabled: bool = True
    storm_starts: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 3
    hook_timeout_s: Annotated[float, msgspec.Meta(ge=1, le=600)] = TIMEOUT_S
    storm_minutes: Annotated[float, msgspec.Meta(gt=0, le=1440)] = 10.0
    mqtt: MqttConfig = MqttConfig()
