"""What can be set about speech."""

from __future__ import annotations

from typing import Annotated

import msgspec

PROVIDER = "local"
OFF = "off"


class SpeechConfig(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """`hear` and `say` are `provider/model`, the provider alone for its usual one, `local` for the
    engine on this machine, or `off`; '' is `local`. `voice` is what the engine calls a voice, or
    the path of an ONNX file of Piper; `language` a code of ISO 639-1 that people speak, '' for any.
    With `show_heard` people in chats are told what was heard, and with `answer_aloud` somebody who
    speaks is answered in words and by voice. `idle_s` is how long the engines on this machine stay
    in memory."""

    hear: str = ""
    say: str = ""
    voice: str = ""
    language: Annotated[str, msgspec.Meta(pattern=r"^([a-z]{2,3})?$")] = ""
    show_heard: bool = True
    answer_aloud: bool = True
    idle_s: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 300.0


def is_local(name: str) -> bool:
    """Whether this names the engine on this machine."""
    return name in ("", PROVIDER) or name.startswith(f"{PROVIDER}/")


def find_local_model(name: str) -> str:
    """The weights that `local/NAME` names; '' for the best that are here."""
    return name.partition("/")[2]
