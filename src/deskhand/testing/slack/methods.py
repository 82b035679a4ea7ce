"""The methods of the Web API that a bot calls, with the limits and the errors of the real one.

Facts: https://docs.slack.dev/reference/methods, one page for each method.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .blocks import Json
from .chat_methods import (
    delete_message,
    permalink,
    post_ephemeral,
    post_message,
    reactions_add,
    reactions_remove,
    update_message,
)
from .file_methods import complete_upload, file_info, upload_url
from .params import Params, place_of, truth
from .records import DATE, Conversation, Post, Refusal
from .workspace import Workspace

# ---------------------------------------------------------------------- who


def auth_test(workspace: Workspace, params: Params) -> Json:
    return {
        "url": f"{workspace.origin}/",
        "team": "Deskhand",
        "user": workspace.users[workspace.bot]["name"],
        "team_id": workspace.team,
        "user_id": workspace.bot,
        "bot_id": workspace.bot_id,
        "is_enterprise_install": False,
    }


def _need(workspace: Workspace, *scopes: str) -> None:
    """Raises Refusal unless the app has all of these scopes."""
    for scope in scopes:
        if scope not in workspace.scopes:
            provided = ",".join(sorted(workspace.scopes))
            raise Refusal("missing_scope", needed=scope, provided=provided)


def users_info(workspace: Workspace, params: Params) -> Json:
    _need(workspace, "users:read")
    found = workspace.users.get(str(params.get("user")))
    if found is None:
        raise Refusal("user_not_found")
    return {"user": found}


def users_list(workspace: Workspace, params: Params) -> Json:
    shown, cursor = _page(list(workspace.users.values()), params, most=1000)
    return {"members": shown, "cache_ts": DATE, "response_metadata": {"next_cursor": cursor}}


def bots_info(workspace: Workspace, params: Params) -> Json:
    bot = str(params.get("bot"))
    if bot not in (workspace.bot_id, "B0OTHER"):
        raise Refusal("bot_not_found")
    ours = bot == workspace.bot_id
    about = {"app_id": workspace.app, "user_id": workspace.bot} if ours else {"app_id": "A0OTHER"}
    return {"bot": {"id": bot, "deleted": False, "name": "desk" if ours else "other", **about}}


# ---------------------------------------------------------------------- where

SCOPE_NAMES = {"channel": "channels", "group": "groups", "im": "im", "mpim": "mpim"}
"""How the scopes of each kind of conversation begin."""
_LISTED = ("channel", "group")


def _shown(workspace: Workspace, place: Conversation) -> Json:
    about = {"id": place.id, "created": DATE, "is_archived": place.archived}
    if place.kind == "im":
        return {**about, "is_im": True, "user": place.user, "is_org_shared": False}
    private = place.kind != "channel"
    kinds = {
        "is_channel": place.kind == "channel",
        "is_group": place.kind == "group",
        "is_mpim": place.kind == "mpim",
    }
    member = workspace.bot in place.members
    about |= {"name": place.name, **kinds, "is_im": False, "is_private": private}
    return {**about, "is_member": member, "num_members": len(place.members)}


def conversations_list(workspace: Workspace, params: Params) -> Json:
    asked = str(params.get("types") or "public_channel").split(",")
    kinds = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
    if any(each not in kinds for each in asked):
        raise Refusal("invalid_types")
    wanted = {kinds[each] for each in asked}
    _need(workspace, *(f"{SCOPE_NAMES[each]}:read" for each in sorted(wanted) if each in _LISTED))
    places = [
        each
        for each in workspace.places.values()
        # Only members see what is private.
        if each.kind in wanted and (each.kind == "channel" or workspace.bot in each.members)
    ]
    if truth(params.get("exclude_archived")):
        places = [each for each in places if not each.archived]
    shown, cursor = _page([_shown(workspace, each) for each in places], params, most=1000)
    return {"channels": shown, "response_metadata": {"next_cursor": cursor}}


def conversations_info(workspace: Workspace, params: Params) -> Json:
    return {"channel": _shown(workspace, place_of(workspace, params))}


def conversations_open(workspace: Workspace, params: Params) -> Json:
    if params.get("channel"):
        return {"channel": {"id": place_of(workspace, params).id}}
    users = [each for each in str(params.get("users") or "").split(",") if each]
    if not users:
        raise Refusal("users_list_not_supplied")
    if any(each not in workspace.users or each == workspace.bot for each in users):
        raise Refusal("user_not_found")
    if len(users) == 1:
        return {"channel": {"id": workspace.im(users[0])}}
    return {"channel": {"id": workspace.channel("mpdm", kind="mpim", members=users)}}


def _page(found: list[Json], params: Params, *, most: int) -> tuple[list[Json], str]:
    """Part of a list, and the cursor of the next one, '' after the last."""
    try:
        start = int(params.get("cursor") or 0)
    except ValueError as error:
        raise Refusal("invalid_cursor") from error
    end = start + min(int(params.get("limit") or 100), most)
    return found[start:end], str(end) if end < len(found) else ""


def _seen(post: Post, params: Params) -> Json:
    if truth(params.get("include_all_metadata")):
        return post.json
    return {key: value for key, value in post.json.items() if key != "metadata"}


def _between(posts: list[Post], params: Params) -> list[Post]:
    oldest = str(params.get("oldest") or "0")
    latest = str(params.get("latest") or "9999999999.0")
    inclusive = truth(params.get("inclusive"))

    def inside(post: Post) -> bool:
        edge = inclusive and post.ts in (oldest, latest)
        return edge or float(oldest) < float(post.ts) < float(latest)

    return [post for post in posts if inside(post)]


def conversations_history(workspace: Workspace, params: Params) -> Json:
    """Newest first, without what was said in threads."""
    place = place_of(workspace, params)
    _need(workspace, f"{SCOPE_NAMES[place.kind]}:history")
    if workspace.bot not in place.members:
        raise Refusal("not_in_channel")
    top = [
        post
        for post in workspace.posts.get(place.id, ())
        if not post.thread or post.json.get("subtype") == "thread_broadcast"
    ]
    posts = _between(top, params)[::-1]
    shown, cursor = _page([_seen(post, params) for post in posts], params, most=999)
    more: Json = {"response_metadata": {"next_cursor": cursor}} if cursor else {}
    return {"messages": shown, "has_more": bool(cursor), "pin_count": 0, **more}


def conversations_replies(workspace: Workspace, params: Params) -> Json:
    """Oldest first, beginning with the message that has the thread."""
    place = place_of(workspace, params)
    _need(workspace, f"{SCOPE_NAMES[place.kind]}:history")
    if workspace.bot not in place.members:
        raise Refusal("not_in_channel")
    parent = workspace.find(place.id, str(params.get("ts")))
    if parent is None:
        raise Refusal("thread_not_found")
    start = parent.thread or parent.ts
    posts = workspace.posts[place.id]
    thread = [post for post in posts if start in (post.ts, post.thread)]
    shown_posts = [post for post in thread if post.ts == start or post in _between(thread, params)]
    shown, cursor = _page([_seen(post, params) for post in shown_posts], params, most=999)
    more: Json = {"response_metadata": {"next_cursor": cursor}} if cursor else {}
    return {"messages": shown, "has_more": bool(cursor), **more}


# ---------------------------------------------------------------------- the rest


def set_status(workspace: Workspace, params: Params) -> Json:
    """An empty status takes it away; Slack does so too when the bot answers in the thread."""
    place = place_of(workspace, {"channel": params.get("channel_id")})
    thread = str(params.get("thread_ts") or "")
    if workspace.find(place.id, thread) is None:
        raise Refusal("invalid_thread_ts")
    workspace.statuses.append((place.id, thread, str(params.get("status") or "")))
    return {}


def open_view(workspace: Workspace, params: Params) -> Json:
    """A trigger is used once, and within three seconds, which is not pretended here."""
    trigger = str(params.get("trigger_id"))
    known = {press.trigger_id for press in workspace.presses_by_url.values()}
    if trigger not in known:
        raise Refusal("invalid_trigger_id")
    if any(each["trigger_id"] == trigger for each in workspace.views):
        raise Refusal("exchanged_trigger_id")
    view = {**dict(params.get("view") or {}), "id": f"V{next(workspace.numbers):08}"}
    workspace.views.append({**view, "trigger_id": trigger})
    return {"view": {**view, "team_id": workspace.team, "bot_id": workspace.bot_id}}


def nothing(workspace: Workspace, params: Params) -> Json:
    return {}


METHODS: dict[str, Callable[[Workspace, Params], dict[str, Any]]] = {
    "api.test": nothing,
    "auth.test": auth_test,
    "users.info": users_info,
    "users.list": users_list,
    "bots.info": bots_info,
    "conversations.list": conversations_list,
    "conversations.info": conversations_info,
    "conversations.open": conversations_open,
    "conversations.history": conversations_history,
    "conversations.replies": conversations_replies,
    "chat.postMessage": post_message,
    "chat.postEphemeral": post_ephemeral,
    "chat.update": update_message,
    "chat.delete": delete_message,
    "chat.getPermalink": permalink,
    "reactions.add": reactions_add,
    "reactions.remove": reactions_remove,
    "files.getUploadURLExternal": upload_url,
    "files.completeUploadExternal": complete_upload,
    "files.info": file_info,
    "assistant.threads.setStatus": set_status,
    "views.open": open_view,
}
