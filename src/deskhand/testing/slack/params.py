"""What clients give to the methods of Slack's Web API, and what it names."""

from __future__ import annotations

from typing import Any

import msgspec

from .records import Conversation, Post, Refusal
from .workspace import Workspace

Params = dict[str, Any]
_JSON = {"blocks", "attachments", "files", "metadata", "view", "loading_messages"}
"""Of these alone forms have JSON; a text that begins with a bracket is a text."""

_NAMES = """
+1 -1 thumbsup thumbsdown eyes heart fire tada rocket wave clap pray ok_hand muscle
raised_hands white_check_mark heavy_check_mark ballot_box_with_check x heavy_multiplication_x
warning no_entry no_entry_sign octagonal_sign stop_sign question exclamation grey_question
hourglass hourglass_flowing_sand clock1 watch stopwatch zzz speech_balloon thought_balloon
thinking_face thinking writing_hand pencil pencil2 memo robot_face gear hammer wrench mag bulb
lock unlock key bell no_bell mute inbox_tray outbox_tray email calendar pushpin bookmark link
star sparkles zap boom 100 joy smile slightly_smiling_face grin sob cry open_mouth scream rage
face_palm shrug saluting_face red_circle large_green_circle large_yellow_circle
arrows_counterclockwise double_vertical_bar arrow_forward checkered_flag skull ghost bug
see_no_evil sunglasses
"""
EMOJI = frozenset(_NAMES.split())
"""Of the names that there are: https://github.com/iamcal/emoji-data."""


def decoded(params: Params) -> Params:
    """Lists and objects, which come as JSON in forms and addresses."""
    return {name: _decoded(value) if name in _JSON else value for name, value in params.items()}


def _decoded(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def truth(value: object) -> bool:
    return value in (True, 1, "1", "true", "True")


def place_of(workspace: Workspace, params: Params, *, by_user: bool = False) -> Conversation:
    """The place that `channel` names; a message may also be sent `by_user`, to the id of a person
    or the name of a channel. Raises Refusal."""
    asked = str(params.get("channel") or "")
    place = workspace.places.get(asked)
    if place is None and by_user:
        if asked in workspace.users and asked != workspace.bot:
            return workspace.places[workspace.im(asked)]
        named = (each for each in workspace.places.values() if each.name == asked.lstrip("#"))
        place = next(named, None) if asked else None
    hidden = place is not None and place.kind != "channel" and workspace.bot not in place.members
    if place is None or hidden:
        raise Refusal("channel_not_found")
    return place


def target(workspace: Workspace, params: Params, name: str) -> Post:
    """The message that `channel` and this parameter name. Raises Refusal."""
    place = place_of(workspace, params)
    post = workspace.find(place.id, str(params.get(name) or ""))
    if post is None:
        raise Refusal("message_not_found")
    return post
