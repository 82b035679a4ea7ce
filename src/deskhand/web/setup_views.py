"""The first five minutes in shapes: what the page is told, what it sends, and what is done behind
it."""

from __future__ import annotations

from typing import Literal

import msgspec


class OfferView(msgspec.Struct, frozen=True):
    """A way to get a model. `todo` is the command that does the same in a terminal."""

    kind: str
    model: str
    title: str
    detail: str
    todo: str
    ready: bool


class ProviderView(msgspec.Struct, frozen=True):
    """A provider that takes a key, in the variable `key_env`. `model` is the one that it would be
    used with."""

    name: str
    key_env: str
    has_key: bool
    model: str


class PullView(msgspec.Struct, frozen=True):
    """A download that is going on (`done` below `size`), is over, or failed (`problem`)."""

    model: str
    done: int
    size: int
    problem: str = ""


class ProbeView(msgspec.Struct, frozen=True):
    """What a model did when it was tried: it answered (`said`), and it called a tool when asked to
    (`tools`)."""

    model: str
    ok: bool
    said: str = ""
    tools: bool = False
    first_s: float = 0.0
    whole_s: float = 0.0
    problem: str = ""


class NeedView(msgspec.Struct, frozen=True):
    """Something that a channel has to be given. `where` says where people find it."""

    setting: str
    label: str
    where: str
    secret: bool
    example: str
    optional: bool


class ChannelGuideView(msgspec.Struct, frozen=True):
    """A kind of channel, and what is still missing for it. `connected`: one of this kind is set
    up."""

    kind: str
    title: str
    link: str
    needs: list[NeedView]
    connected: bool


class ConnectedView(msgspec.Struct, frozen=True):
    """A channel that works. `link` opens a chat with it, or lets people invite it; `qr_svg` is the
    same for a phone; `after` is what to do next."""

    kind: str
    name: str
    link: str
    qr_svg: str
    after: str


class CheckView(msgspec.Struct, frozen=True):
    """What an examination found, and what to type about it."""

    name: str
    level: str
    text: str
    remedy: str = ""


SetupStep = Literal["model", "person", "permissions", "channel", "job"]


class SetupView(msgspec.Struct, frozen=True):
    """Where things stand. `demo`: no model is chosen, and a script answers in its place. `moving`
    says which other systems were used on this machine, whose conversations and settings can be
    taken over; '' for none. `done` are the steps that were taken, wherever that was."""

    model: str
    demo: bool
    offers: list[OfferView]
    providers: list[ProviderView]
    pull: PullView | None
    channels: list[ChannelGuideView]
    connected: ConnectedView | None
    permission_mode: str
    permission_modes: dict[str, str]
    timezone: str
    person: str
    examples: list[str]
    moving: str = ""
    done: list[SetupStep] = []


class Key(msgspec.Struct, frozen=True):
    """A key for `provider`; with it the model that is to be used, '' for the provider's usual one.
    `base_url` is where it is reached, '' for the known address; `vision` whether the model sees
    pictures, null for what is known of it."""

    provider: str
    key: str = ""
    model: str = ""
    base_url: str = ""
    vision: bool | None = None


class Take(msgspec.Struct, frozen=True):
    """Use this model; where it must be fetched first, fetching begins, and GET shows how far it
    is."""

    model: str


class NewChannel(msgspec.Struct, frozen=True):
    """A channel of this kind, with an answer for each of its needs, by `setting`."""

    kind: str
    answers: dict[str, str]


class Person(msgspec.Struct, frozen=True):
    name: str = ""
    timezone: str = ""


class ChosenMode(msgspec.Struct, frozen=True):
    permission_mode: str
