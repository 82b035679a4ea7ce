"""What a bot asks of Discord's REST API, with the limits and the error codes of the real one.

https://docs.discord.com/developers/topics/opcodes-and-status-codes#json has the codes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .body import NONCE, Call, number, replied_to, too_long, written
from .gateway import app_flags
from .state import EPHEMERAL, IS_VOICE, THREADS, Json, Post, Refusal, invalid

PAGE = 100
GUILDS_PAGE = 200


# ---------------------------------------------------------------------- accounts and channels


def get_me(call: Call) -> Json:
    return {**call.guild.bot, "verified": True, "mfa_enabled": False, "locale": "en-US"}


def get_user(call: Call) -> Json:
    guild = call.guild
    id = number(call.path["user"], "user_id")
    if id != guild.bot_id and id not in guild.people:
        raise Refusal(404, 10013, "Unknown User")
    return guild.account(id)


def get_application(call: Call) -> Json:
    bot = call.guild.bot
    return {
        "id": bot["id"],
        "name": bot["username"],
        "icon": None,
        "description": "",
        "bot": bot,
        "bot_public": False,
        "bot_require_code_grant": False,
        "verify_key": "00" * 32,
        "flags": app_flags(call.approved),
        "owner": {**call.guild.person(1, "owner")},
        "team": None,
        "summary": "",
        "hook": True,
        "rpc_origins": [],
        "approximate_guild_count": 1,
        "redirect_uris": [],
        "interactions_endpoint_url": None,
    }


def open_dm(call: Call) -> Json:
    id = number(call.body.get("recipient_id"), "recipient_id")
    if id not in call.guild.people or call.guild.people[id]["bot"]:
        raise Refusal(400, 50033, "Invalid Recipient(s)")
    return call.guild.channels[call.guild.open_direct(id)]


def get_channel(call: Call) -> Json:
    return call.guild.channels[call.place()]


def get_guilds(call: Call) -> list[Json]:
    limit = number(call.query.get("limit", "200"), "limit")
    if not 1 <= limit <= GUILDS_PAGE:
        raise invalid(
            "limit", "NUMBER_TYPE_MAX", f"int value should be between 1 and {GUILDS_PAGE}."
        )
    after = number(call.query.get("after", "0"), "after")
    shown = {"id": str(call.guild.id), "name": call.guild.name, "icon": None, "owner": False}
    more = {"permissions": "0", "features": []}
    return [{**shown, **more}] if call.guild.id > after else []


def get_guild_channels(call: Call) -> list[Json]:
    """All of them, also those that the bot cannot read; threads are not among them."""
    if number(call.path["guild"], "guild_id") != call.guild.id:
        raise Refusal(404, 10004, "Unknown Guild")
    places = [each for each in call.guild.channels.values() if "guild_id" in each]
    return [each for each in places if each["type"] not in THREADS]


def start_typing(call: Call) -> None:
    call.guild.typing.append(call.writable())


# ---------------------------------------------------------------------- messages


def get_messages(call: Call) -> list[Json]:
    """The newest first, whichever way was asked for. `after` begins with the one that follows."""
    channel = call.place()
    limit = number(call.query.get("limit", "50"), "limit")
    if not 1 <= limit <= PAGE:
        raise invalid("limit", "NUMBER_TYPE_MAX", f"int value should be between 1 and {PAGE}.")
    posts = call.guild.messages(channel)
    if "after" in call.query:
        after = number(call.query["after"], "after")
        posts = [post for post in posts if post.id > after][:limit]
    elif "before" in call.query:
        before = number(call.query["before"], "before")
        posts = [post for post in posts if post.id < before]
    return [call.shown(post) for post in reversed(posts[-limit:])]


def get_message(call: Call) -> Json:
    return call.shown(call.message())


def create_message(call: Call) -> Json:
    guild = call.guild
    channel = call.writable()
    body = call.body
    nonce = body.get("nonce")
    if nonce is not None and len(str(nonce)) > NONCE:
        raise too_long("nonce", NONCE)
    if nonce is not None and body.get("enforce_nonce"):
        for post in guild.messages(channel):
            if post.author == guild.bot_id and str(post.nonce) == str(nonce):
                return call.shown(post)
    fields = written(call, channel)
    reference = replied_to(call, channel)
    text = str(body.get("content") or "")
    if not text and not any(fields[name] for name in ("embeds", "files", "components")):
        raise Refusal(400, 50006, "Cannot send an empty message")
    allowed = body.get("allowed_mentions")
    replied = (allowed or {}).get("replied_user", allowed is None)
    return call.shown(
        guild.post(
            guild.bot_id,
            channel,
            text,
            nonce=nonce,
            reference=reference,
            pings_replied=replied,
            **fields,
        )
    )


def edit_message(call: Call) -> Json:
    post = call.message()
    if post.author != call.guild.bot_id:
        raise Refusal(403, 50005, "Cannot edit a message authored by another user")
    _rewrite(call, post)
    return call.shown(post)


def delete_message(call: Call) -> None:
    """The bot has no right to delete what others wrote."""
    post = call.message()
    if post.author != call.guild.bot_id:
        if call.guild.is_direct(post.channel):
            raise Refusal(403, 50003, "Cannot execute action on a DM channel")
        raise Refusal(403, 50013, "Missing Permissions")
    call.guild.remove(post)


def _rewrite(call: Call, post: Post) -> None:
    """What the body does not name stays as it is."""
    body = call.body
    if post.flags & IS_VOICE:
        raise Refusal(400, 50162, "Voice messages cannot be edited.")
    fields = written(call, post.channel)
    kept = {str(each["id"]) for each in body.get("attachments") or ()}
    files = post.files
    if "attachments" in body:
        files = [each for each in post.files if str(each.id) in kept]
    files = [*files, *fields["files"]]
    text = post.text
    if "content" in body:
        text = str(body["content"] or "")
    for name in ("components", "embeds"):
        if name in body:
            setattr(post, name, fields[name])
    if not text and not files and not post.embeds and not post.components:
        raise Refusal(400, 50006, "Cannot send an empty message")
    post.files = files
    call.guild.rewrite(post, text)


# ---------------------------------------------------------------------- reactions, presses


def add_reaction(call: Call) -> None:
    _react(call, add=True)


def remove_reaction(call: Call) -> None:
    _react(call, add=False)


def _react(call: Call, *, add: bool) -> None:
    post = call.message()
    emoji = call.path["emoji"]
    if emoji.isascii():
        raise Refusal(400, 10014, "Unknown Emoji")
    call.guild.react(call.guild.bot_id, post, emoji, add=add)


def answer_interaction(call: Call) -> Json | None:
    """https://docs.discord.com/developers/interactions/receiving-and-responding: once, within
    three seconds."""
    guild = call.guild
    id = call.path["interaction"]
    token, post, user = guild.interactions.get(id, ("", None, 0))
    if post is None or token != call.path["token"]:
        raise Refusal(404, 10062, "Unknown interaction")
    if id in guild.answers:
        raise Refusal(400, 40060, "Interaction has already been acknowledged.")
    answer = call.body
    kind = answer.get("type")
    if kind not in (4, 6, 7):
        raise invalid("type", "BASE_TYPE_CHOICES", "Value must be one of {4, 6, 7}.")
    inner = msgspec.structs.replace(call, body=answer.get("data") or {})
    made: Json = {}
    if kind == 4:
        made = _answered(inner, post, user)
    elif kind == 7:
        _rewrite(inner, post)
        made = {"message": guild.shown(post)}
    guild.answers[id] = answer
    if call.query.get("with_response", "").lower() not in ("1", "true"):
        return None
    about = {"id": id, "type": 3, "response_message_loading": False}
    shown: Json = {"interaction": about}
    if made:
        shown["interaction"] |= {"response_message_id": made["message"]["id"]}
        shown["resource"] = {"type": kind, **made}
    return shown


def _answered(call: Call, post: Post, user: int) -> Json:
    guild = call.guild
    fields = written(call, post.channel)
    text = str(call.body.get("content") or "")
    if not text and not any(fields[name] for name in ("embeds", "files", "components")):
        raise Refusal(400, 50006, "Cannot send an empty message")
    if int(call.body.get("flags") or 0) & EPHEMERAL:
        guild.whispers.append((user, text))
        whisper = Post(
            id=guild.snowflake(),
            channel=post.channel,
            author=guild.bot_id,
            text=text,
            flags=EPHEMERAL,
        )
        return {"message": guild.shown(whisper)}
    return {"message": guild.shown(guild.post(guild.bot_id, post.channel, text, **fields))}


_CHANNEL = "/channels/{channel}"
_MESSAGE = "/channels/{channel}/messages/{message}"
METHODS: dict[str, tuple[str, str, Callable[[Call], Any]]] = {
    "get_me": ("GET", "/users/@me", get_me),
    "get_application": ("GET", "/applications/@me", get_application),
    "get_oauth_application": ("GET", "/oauth2/applications/@me", get_application),
    "open_dm": ("POST", "/users/@me/channels", open_dm),
    "get_user": ("GET", "/users/{user}", get_user),
    "get_guilds": ("GET", "/users/@me/guilds", get_guilds),
    "get_guild_channels": ("GET", "/guilds/{guild}/channels", get_guild_channels),
    "get_channel": ("GET", _CHANNEL, get_channel),
    "start_typing": ("POST", f"{_CHANNEL}/typing", start_typing),
    "get_messages": ("GET", f"{_CHANNEL}/messages", get_messages),
    "create_message": ("POST", f"{_CHANNEL}/messages", create_message),
    "get_message": ("GET", _MESSAGE, get_message),
    "edit_message": ("PATCH", _MESSAGE, edit_message),
    "delete_message": ("DELETE", _MESSAGE, delete_message),
    "add_reaction": ("PUT", f"{_MESSAGE}/reactions/{{emoji}}/@me", add_reaction),
    "remove_reaction": ("DELETE", f"{_MESSAGE}/reactions/{{emoji}}/@me", remove_reaction),
    "answer_interaction": (
        "POST",
        "/interactions/{interaction}/{token}/callback",
        answer_interaction,
    ),
}
"""By the name that faults have: method, path below /api/v10, and what is done."""
