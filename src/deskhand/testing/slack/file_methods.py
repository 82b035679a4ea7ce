"""The methods of the Web API with which a bot sends a file and asks about one: three steps, as
https://docs.slack.dev/messaging/working-with-files#upload says."""

from __future__ import annotations

import mimetypes

from .blocks import Json
from .chat_methods import say
from .params import Params, place_of
from .records import File, Refusal
from .workspace import Workspace


def upload_url(workspace: Workspace, params: Params) -> Json:
    name = str(params.get("filename") or "")
    length = int(params.get("length") or 0)
    if not name or length <= 0:
        raise Refusal("invalid_arguments")
    about = {"alt_txt": params["alt_txt"]} if params.get("alt_txt") else {}
    about["mimetype"] = mimetypes.guess_type(name)[0] or "application/octet-stream"
    file = workspace.stored(workspace.bot, b"", name, about)
    file.length = length
    return {"file_id": file.id, "upload_url": f"{workspace.origin}/upload/v1/{file.id}"}


def complete_upload(workspace: Workspace, params: Params) -> Json:
    """Shares the files, in one message. Its ts is not in the answer: Slack posts it later. It
    stands in the `shares` that files.info shows."""
    asked = params.get("files") or []
    if not asked or not isinstance(asked, list):
        raise Refusal("invalid_arguments")
    files = []
    for each in asked:
        file = workspace.files.get(str(each.get("id")))
        if file is None or not file.data or file.length < 0 or file.shares:
            raise Refusal("file_not_found")
        file.json["title"] = each.get("title") or file.json["name"]
        files.append(file)
    # Looked at first, so that a channel that is not there leaves no file half shared.
    places = [place_of(workspace, {"channel": each}) for each in _channels(params)]
    if any(workspace.bot not in place.members for place in places):
        raise Refusal("not_in_channel")
    # What is answered does not say where they are shared: that happens later.
    answered = [dict(file.json) for file in files]
    for place in places:
        comment = str(params.get("initial_comment") or "")
        fields: Json = {"text": comment, "subtype": "file_share", "upload": True}
        if params.get("blocks") and not comment:
            fields["blocks"] = params["blocks"]
        if params.get("thread_ts"):
            fields["thread_ts"] = params["thread_ts"]
        post = say(workspace, place.id, {**fields, "files": [file.json for file in files]})
        for file in files:
            file.shares.append(post)
    return {"files": answered}


def _channels(params: Params) -> list[str]:
    many = params.get("channels") or ""
    named = many if isinstance(many, list) else str(many).split(",")
    return [each for each in (params.get("channel_id"), *named) if each]


def file_info(workspace: Workspace, params: Params) -> Json:
    file = workspace.files.get(str(params.get("file")))
    if file is None:
        raise Refusal("file_not_found")
    return {"file": {**file.json, **shares(workspace, file)}, "comments": []}


def shares(workspace: Workspace, file: File) -> Json:
    """Where a file is shared, and with which messages."""
    found: Json = {}
    for post in file.shares:
        kind = "public" if workspace.places[post.channel].kind == "channel" else "private"
        where = found.setdefault(kind, {}).setdefault(post.channel, [])
        where.append({"ts": post.ts, **({"thread_ts": post.thread} if post.thread else {})})
    return {"shares": found} if found else {}
