"""What agents may use beyond their workspace, as an owner sees it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

_Path = Annotated[str, Meta(min_length=1, max_length=4096, description="the path of a folder")]
_Host = Annotated[str, Meta(min_length=1, max_length=300, description="a host, as it is listed")]
_Agent = Annotated[str, Meta(max_length=100)]


class FolderView(msgspec.Struct, frozen=True, kw_only=True):
    """A folder that an agent may read, or `write` as well. `shown` is its path with what nobody
    sees written out. `outside`: it may write there after reading untrusted content, too."""

    agent: str
    path: str
    shown: str
    write: bool
    outside: bool
    at: float
    by: str


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """A host that commands may reach: of all agents (`agent` is ''), in all conversations
    (`session` is '') or in one."""

    host: str
    agent: str
    session: str
    by: str


class SignInView(msgspec.Struct, frozen=True):
    """A site where agents may ask to use a sign-in. `at` is when it was given, in seconds since the
    epoch, and 0 for one that cannot be read."""

    site: str
    at: float


class AccessView(msgspec.Struct, frozen=True):
    """`agents` are the names of all, the default one first."""

    agents: list[str]
    folders: list[FolderView]
    hosts: list[HostView]
    sign_ins: list[SignInView]


class AllowFolder(msgspec.Struct, frozen=True):
    """Let an agent read a folder, or `write` there as well. What was allowed there before is
    replaced."""

    agent: _Agent
    path: _Path
    write: bool = False


class WhichFolder(msgspec.Struct, frozen=True):
    agent: _Agent
    path: _Path


class WhichSignIn(msgspec.Struct, frozen=True):
    site: _Host


class WhichHost(msgspec.Struct, frozen=True):
    """A host of one agent, or of all ('')."""

    host: _Host
    agent: _Agent = ""
