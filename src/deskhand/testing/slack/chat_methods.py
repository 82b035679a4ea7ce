"""The methods of the Web API with which a bot says something, changes it, and reacts.

Facts: https://docs.slack.dev/reference/methods/chat.postMessage and its neighbours; for the length
of texts https://api.slack.com/changelog/2018-04-truncating-really-long-messages.
"""

from __future__ import annotations

import re

from .blocks import Json, block_error, named
from .params import EMOJI, Params, place_of, target, truth
from .records import Post, Refusal
from .workspace import Workspace

TEXT_CHARACTERS = 40_000
UPDATE_CHARACTERS = 4_000
MARKDOWN_CHARACTERS = 12_000
_EMOJI_NAME = re.compile(r"[^\s:]+(::skin-tone-[2-6])?")


def _content(workspace: Workspace, params: Params) -> Json:
    """Text, blocks and attachments as fields of a message. Raises Refusal."""
    text = str(params.get("text") or "")
    markdown = str(params.get("markdown_text") or "")
    blocks = params.get("blocks")
    if markdown and (text or blocks):
        raise Refusal("markdown_text_conflict")
    if len(markdown) > MARKDOWN_CHARACTERS:
        raise Refusal("msg_too_long")
    found: Json = {"text": text or markdown}
    if blocks:
        error = block_error(blocks)
        if error:
            raise Refusal(error)
        found["blocks"] = named(blocks, workspace.numbers)
    elif markdown:
        found["blocks"] = named([{"type": "markdown", "text": markdown}], workspace.numbers)
    if params.get("attachments"):
        found["attachments"] = params["attachments"]
    if not found["text"].strip() and len(found) == 1:
        raise Refusal("no_text")
    return found


def post_message(workspace: Workspace, params: Params) -> Json:
    place = place_of(workspace, params, by_user=True)
    if place.archived:
        raise Refusal("is_archived")
    if workspace.bot not in place.members:
        raise Refusal("not_in_channel")
    content = _content(workspace, params)
    warned: Json = {}
    if len(content["text"]) > TEXT_CHARACTERS:
        content["text"] = content["text"][:TEXT_CHARACTERS]
        message = "[WARN] Your message was truncated but still posted."
        warned["response_metadata"] = {"warnings": ["message_truncated"], "messages": [message]}
        warned["warning"] = "message_truncated"
    for name in ("thread_ts", "metadata"):
        if params.get(name):
            content[name] = params[name]
    if params.get("thread_ts") and truth(params.get("reply_broadcast")):
        content["subtype"] = "thread_broadcast"
    post = say(workspace, place.id, content)
    post.unfurls = {
        name: truth(params[name]) for name in ("unfurl_links", "unfurl_media") if name in params
    }
    return {"channel": place.id, "ts": post.ts, "message": post.json, **warned}


def say(workspace: Workspace, channel: str, content: Json) -> Post:
    """Post as the bot."""
    name = workspace.users[workspace.bot]["name"]
    bot = {"bot_id": workspace.bot_id, "app_id": workspace.app}
    profile = {"id": workspace.bot_id, "name": name, "app_id": workspace.app, "deleted": False}
    return workspace.post(channel, {**bot, "bot_profile": profile, **content}, user=workspace.bot)


def post_ephemeral(workspace: Workspace, params: Params) -> Json:
    place = place_of(workspace, params)
    user = str(params.get("user"))
    if user not in place.members and place.kind == "im":
        raise Refusal("user_not_in_channel")
    workspace.whispers.append((place.id, user, _content(workspace, params)))
    return {"message_ts": workspace.next_ts()}


def update_message(workspace: Workspace, params: Params) -> Json:
    """Blocks stay only if no text is given: https://docs.slack.dev/reference/methods/chat.update"""
    post = _ours(workspace, params, "cant_update_message")
    if post.ts in workspace.closed_edits:
        raise Refusal("edit_window_closed")
    if len(str(params.get("text") or "")) > UPDATE_CHARACTERS:
        raise Refusal("msg_too_long")
    content = _content(workspace, params)
    if "blocks" not in content and (params.get("text") or params.get("blocks") == []):
        content["blocks"] = None
    if params.get("attachments") == []:
        content["attachments"] = None
    if not params.get("text") and not params.get("markdown_text"):
        del content["text"]
    if params.get("metadata"):
        content["metadata"] = params["metadata"]
    workspace.rewrite(post, content, user=workspace.bot)
    return {"channel": post.channel, "ts": post.ts, "text": post.json["text"], "message": post.json}


def delete_message(workspace: Workspace, params: Params) -> Json:
    post = _ours(workspace, params, "cant_delete_message")
    workspace.deletes(post)
    return {"channel": post.channel, "ts": post.ts}


def _ours(workspace: Workspace, params: Params, error: str) -> Post:
    post = target(workspace, params, "ts")
    if post.user != workspace.bot:
        raise Refusal(error)
    return post


def permalink(workspace: Workspace, params: Params) -> Json:
    post = target(workspace, params, "message_ts")
    path = f"/archives/{post.channel}/p{post.ts.replace('.', '')}"
    return {"channel": post.channel, "permalink": f"{workspace.origin}{path}"}


# ---------------------------------------------------------------------- reactions


def _users(post: Post, name: str) -> list[str]:
    found = (each["users"] for each in post.json.get("reactions", []) if each["name"] == name)
    return list(next(found, ()))


def _emoji(workspace: Workspace, params: Params) -> str:
    name = str(params.get("name") or "").strip(":")
    known = name.partition("::")[0] in EMOJI | workspace.emoji
    if not known or not _EMOJI_NAME.fullmatch(name):
        raise Refusal("invalid_name")
    return name


def reactions_add(workspace: Workspace, params: Params) -> Json:
    post = target(workspace, params, "timestamp")
    name = _emoji(workspace, params)
    if workspace.bot in _users(post, name):
        raise Refusal("already_reacted")
    workspace.reacts(workspace.bot, post, name)
    return {}


def reactions_remove(workspace: Workspace, params: Params) -> Json:
    post = target(workspace, params, "timestamp")
    name = _emoji(workspace, params)
    if workspace.bot not in _users(post, name):
        raise Refusal("no_reaction")
    workspace.reacts(workspace.bot, post, name, remove=True)
    return {}
