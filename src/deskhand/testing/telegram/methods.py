"""The methods of the Bot API that a bot calls, with the limits and the words of the real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .chat import DATE, Chats, Json, Post, Refusal

Params = dict[str, Any]
TEXT_UNITS = 4096
CAPTION_UNITS = 1024
DATA_BYTES = 64
ENTITIES = 100
DOWNLOAD_BYTES = 20 * 2**20
REACTIONS = frozenset("👍👎❤🔥🥰👏😁🤔🤯😱😢🎉🤩🙏👌💯🤣⚡🏆👀✍🫡")
"""Of those that there are: https://core.telegram.org/bots/api#reactiontypeemoji."""
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF")


def units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le")) // 2


def _chat(chats: Chats, params: Params) -> int:
    try:
        chat = int(params["chat_id"])
    except (KeyError, ValueError) as error:
        raise Refusal(400, "Bad Request: chat not found") from error
    if chat not in chats.chats:
        raise Refusal(400, "Bad Request: chat not found")
    if chat in chats.blocked:
        raise Refusal(403, "Forbidden: bot was blocked by the user")
    return chat


def _checked(text: str, entities: list[Json] | None, most: int, what: str) -> Json:
    """Text and entities as fields of a message."""
    if not text.strip():
        raise Refusal(400, "Bad Request: message text is empty")
    if units(text) > most:
        raise Refusal(400, f"Bad Request: {what} is too long")
    encoded = text.encode("utf-16-le")
    for entity in entities or ():
        start = 2 * entity["offset"]
        end = 2 * (entity["offset"] + entity["length"])
        try:
            encoded[start:end].decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise Refusal(400, "Bad Request: ENTITY_BOUNDS_INVALID") from error
        if not 0 <= start < end <= len(encoded):
            raise Refusal(400, "Bad Request: ENTITY_BOUNDS_INVALID")
    return {"entities": entities[:ENTITIES]} if entities else {}


def _markup(params: Params) -> Json:
    markup = params.get("reply_markup")
    if not markup:
        return {}
    for row in markup.get("inline_keyboard", []):
        for button in row:
            if not 0 < len(button.get("callback_data", "x").encode()) <= DATA_BYTES:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
    return {"reply_markup": markup} if markup.get("inline_keyboard") else {}


def _about(chats: Chats, chat: int, params: Params) -> Json:
    """Thread, reply and buttons."""
    found = _markup(params)
    if params.get("message_thread_id"):
        found |= {"message_thread_id": int(params["message_thread_id"]), "is_topic_message": True}
    reply = params.get("reply_parameters")
    if reply:
        target = chats.find(chat, int(reply["message_id"]))
        if target is None and not reply.get("allow_sending_without_reply"):
            raise Refusal(400, "Bad Request: message to be replied not found")
        if target is not None:
            found["reply_to_message"] = {
                k: v for k, v in target.json.items() if k != "reply_to_message"
            }
    return found


def get_me(chats: Chats, params: Params) -> Json:
    can = {
        "can_join_groups": True,
        "can_read_all_group_messages": False,
        "supports_inline_queries": False,
    }
    return {**chats.bot, **can}


def send_message(chats: Chats, params: Params) -> Json:
    chat = _chat(chats, params)
    text = str(params.get("text", ""))
    fields = {"text": text, **_checked(text, params.get("entities"), TEXT_UNITS, "message")}
    previews = params.get("link_preview_options")
    if previews:
        fields["link_preview_options"] = previews
    return _posted(chats, chat, {**fields, **_about(chats, chat, params)}, params)


def _posted(chats: Chats, chat: int, fields: Json, params: Params, file: bytes = b"") -> Json:
    post = chats.post(chats.bot["id"], chat, fields, file)
    post.silent = params.get("disable_notification") in (True, "true")
    return post.json


def _ours(chats: Chats, params: Params, what: str) -> Post:
    chat = _chat(chats, params)
    post = chats.find(chat, int(params.get("message_id", 0)))
    if post is None:
        raise Refusal(400, f"Bad Request: message to {what} not found")
    if post.sender != chats.bot["id"]:
        raise Refusal(400, f"Bad Request: message can't be {what}ed")
    return post


def edit_text(chats: Chats, params: Params) -> Json:
    post = _ours(chats, params, "edit")
    text = str(params.get("text", ""))
    fields = {
        "text": text,
        **_checked(text, params.get("entities"), TEXT_UNITS, "message"),
        **_markup(params),
    }
    return _edited(chats, post, fields, ("text", "entities", "reply_markup"))


def edit_markup(chats: Chats, params: Params) -> Json:
    return _edited(chats, _ours(chats, params, "edit"), _markup(params), ("reply_markup",))


def _edited(chats: Chats, post: Post, fields: Json, changes: tuple[str, ...]) -> Json:
    if all(post.json.get(name) == fields.get(name) for name in changes):
        raise Refusal(
            400, "Bad Request: message is not modified: specified new message content is the same"
        )
    post.edits.append(post.text)
    kept = {name: value for name, value in post.json.items() if name not in changes}
    post.json = {**kept, **fields, "edit_date": DATE + 1}
    chats.changed()
    return post.json


def delete_message(chats: Chats, params: Params) -> bool:
    """https://core.telegram.org/bots/api#deletemessage: of two days at most, in a group only the
    bot's own; it is no administrator here."""
    chat = _chat(chats, params)
    post = chats.find(chat, int(params.get("message_id", 0)))
    if post is None:
        raise Refusal(400, "Bad Request: message to delete not found")
    theirs = post.sender != chats.bot["id"] and chats.chats[chat]["type"] != "private"
    if theirs or (chat, post.id) in chats.old:
        raise Refusal(400, "Bad Request: message can't be deleted for everyone")
    chats.removed.append(post)
    chats.posts[chat].remove(post)
    chats.changed()
    return True


def _send_file(kind: str) -> Callable[[Chats, Params], Json]:
    def send(chats: Chats, params: Params) -> Json:
        chat = _chat(chats, params)
        given = params.get(kind)
        caption = str(params.get("caption", ""))
        name, data = (
            given if isinstance(given, tuple) else ("", chats.files.get(str(given), ("", b""))[1])
        )
        if not data:
            raise Refusal(400, "Bad Request: file must be non-empty")
        if kind == "voice" and chat in chats.voiceless:
            raise Refusal(400, "Bad Request: VOICE_MESSAGES_FORBIDDEN")
        if kind == "photo" and not data.startswith(_PICTURES):
            raise Refusal(400, "Bad Request: IMAGE_PROCESS_FAILED")
        fields: Json = {"caption": caption} if caption else {}
        if caption:
            checked = _checked(
                caption, params.get("caption_entities"), CAPTION_UNITS, "message caption"
            )
            fields |= {f"caption_{name}": value for name, value in checked.items()}
        about = chats.stored(data, name, kind)
        if kind == "voice" and "duration" in params:
            about["duration"] = int(params["duration"])
        fields[kind] = [about] if kind == "photo" else about
        return _posted(chats, chat, {**fields, **_about(chats, chat, params)}, params, data)

    return send


def chat_action(chats: Chats, params: Params) -> bool:
    chats.actions.append((_chat(chats, params), str(params["action"])))
    chats.changed()
    return True


def answer_query(chats: Chats, params: Params) -> bool:
    query = str(params["callback_query_id"])
    if query not in chats.open_queries:
        raise Refusal(
            400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
        )
    if len(str(params.get("text", ""))) > 200:
        raise Refusal(400, "Bad Request: MESSAGE_TOO_LONG")
    chats.open_queries.remove(query)
    chats.answers[query] = {
        "text": str(params.get("text", "")),
        "alert": params.get("show_alert") in (True, "true"),
    }
    chats.changed()
    return True


def set_reaction(chats: Chats, params: Params) -> bool:
    """https://core.telegram.org/bots/api#setmessagereaction: a bot sets one at most, of those that
    the chat allows."""
    chat = _chat(chats, params)
    post = chats.find(chat, int(params["message_id"]))
    wanted = params.get("reaction") or []
    if post is None:
        raise Refusal(400, "Bad Request: message to react not found")
    if len(wanted) > 1:
        raise Refusal(400, "Bad Request: REACTIONS_TOO_MANY")
    allowed = set(chats.reactions.get(chat, REACTIONS)) & REACTIONS
    if any(each.get("emoji") not in allowed for each in wanted):
        raise Refusal(400, "Bad Request: REACTION_INVALID")
    post.json["reactions"] = wanted
    chats.changed()
    return True


def get_file(chats: Chats, params: Params) -> Json:
    path, data = chats.files.get(str(params["file_id"]), ("", b""))
    if not path:
        raise Refusal(400, "Bad Request: invalid file_id")
    if len(data) > DOWNLOAD_BYTES:
        raise Refusal(400, "Bad Request: file is too big")
    about = {"file_id": params["file_id"], "file_unique_id": "u", "file_size": len(data)}
    return {**about, "file_path": path}


def get_chat(chats: Chats, params: Params) -> Json:
    gifts = (
        "unlimited_gifts",
        "limited_gifts",
        "unique_gifts",
        "premium_subscription",
        "gifts_from_channels",
    )
    more = {
        "accent_color_id": 1,
        "max_reaction_count": 11,
        "accepted_gift_types": dict.fromkeys(gifts, True),
    }
    return {**chats.chats[_chat(chats, params)], **more}


def get_member(chats: Chats, params: Params) -> Json:
    _chat(chats, params)
    return {"status": "member", "user": chats.person(int(params["user_id"]))}


def nothing(chats: Chats, params: Params) -> bool:
    return True


def set_menu_button(chats: Chats, params: Params) -> bool:
    button = params.get("menu_button") or {}
    address = (button.get("web_app") or {}).get("url", "")
    if button.get("type") == "web_app" and not address.startswith("https://"):
        raise Refusal(400, "Bad Request: BUTTON_URL_INVALID")
    chats.menu_button = button
    return True


METHODS: dict[str, Callable[[Chats, Params], object]] = {
    "getme": get_me,
    "sendmessage": send_message,
    "editmessagetext": edit_text,
    "editmessagereplymarkup": edit_markup,
    "deletemessage": delete_message,
    "sendphoto": _send_file("photo"),
    "senddocument": _send_file("document"),
    "sendvoice": _send_file("voice"),
    "sendaudio": _send_file("audio"),
    "sendchataction": chat_action,
    "setmessagereaction": set_reaction,
    "answercallbackquery": answer_query,
    "getfile": get_file,
    "getchat": get_chat,
    "getchatmember": get_member,
    "sendmessagedraft": nothing,
    "setchatmenubutton": set_menu_button,
    "logout": nothing,
    "close": nothing,
}
