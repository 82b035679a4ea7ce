"""The calls of Helix that a bot in a chat makes, with the limits and the words of the real one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...types.clock import Clock
from .chat import Chat, Json, Refusal, User
from .eventsub import EventSub
from .tokens import Token

MOST_CHARACTERS = 500
MOST_WHISPERED = 10_000
MOST_USERS = 100
REPEAT_S = 30.0


class Answer(msgspec.Struct, frozen=True):
    """`body` None has no body at all."""

    status: int
    body: Json | None


class Helix:
    """`drops` are the reasons for which the next chat messages are not sent."""

    def __init__(self, chat: Chat, events: EventSub, clock: Clock) -> None:
        self.drops: list[Json] = []
        self.repeat_s = REPEAT_S
        self.phone_verified = True
        self._chat = chat
        self._events = events
        self._clock = clock

    def answer(self, call: str, token: Token, params: Json) -> Answer:
        """Do what "POST chat/messages" or another call asks for; raises the refusal."""
        handler = self._handlers().get(call)
        if handler is None:
            raise Refusal(404, "")
        return handler(token, params)

    def _handlers(self) -> dict[str, Handler]:
        return {
            "POST eventsub/subscriptions": self._subscribe,
            "GET eventsub/subscriptions": self._subscriptions,
            "DELETE eventsub/subscriptions": self._unsubscribe,
            "POST chat/messages": self._send,
            "POST whispers": self._whisper,
            "GET users": self._users,
        }

    def _subscribe(self, token: Token, params: Json) -> Answer:
        made = self._events.subscribe(token, params, self._chat.banned)
        return Answer(202, self._listed([made.about()]))

    def _subscriptions(self, token: Token, params: Json) -> Answer:
        found = [
            each.about()
            for each in self._events.subscriptions
            if each.user == token.user
            and params.get("status", each.status) == each.status
            and params.get("type", each.type) == each.type
        ]
        return Answer(200, {**self._listed(found), "pagination": {}})

    def _listed(self, data: list[Json]) -> Json:
        enabled = len(self._events.enabled())
        return {"data": data, "total": enabled, "total_cost": 0, "max_total_cost": 10}

    def _unsubscribe(self, token: Token, params: Json) -> Answer:
        self._events.unsubscribe(token, str(params.get("id", "")))
        return Answer(204, None)

    def _send(self, token: Token, params: Json) -> Answer:
        """https://dev.twitch.tv/docs/api/reference/#send-chat-message"""
        _require(token, "user:write:chat")
        room = self._somebody(params, "broadcaster_id")
        sender = self._somebody(params, "sender_id")
        if token.user != sender:
            raise Refusal(401, "The ID in sender_id must match the user ID in the access token")
        text = str(params.get("message", "")).strip()
        if not text:
            raise Refusal(400, "The message is empty")
        if len(text) > MOST_CHARACTERS:
            raise Refusal(400, "The message is too large")
        if room.id in self._chat.banned:
            raise Refusal(403, "The sender is not permitted to send chat messages to this channel")
        parent = self._chat.find(str(params.get("reply_parent_message_id") or ""))
        if params.get("reply_parent_message_id") and (parent is None or parent.channel != room):
            raise Refusal(400, "The parent message was not found")
        reason = self._dropped(sender, room, text)
        if reason is not None:
            said: Json = {"message_id": "", "is_sent": False, "drop_reason": reason}
        else:
            post = self._chat.post(sender, room, text, parent=parent)
            said = {"message_id": post.id, "is_sent": True, "drop_reason": None}
        return Answer(200, {"data": [said]})

    def _dropped(self, sender: User, room: User, text: str) -> Json | None:
        """Why a message is not sent though the call succeeds."""
        if self.drops:
            return self.drops.pop(0)
        mine = self._chat.said(sender, room)
        if mine and mine[-1].text == text and self._clock.now() - mine[-1].at < self.repeat_s:
            return {
                "code": "msg_duplicate",
                "message": "Your message was not sent because it is identical to the previous one "
                "you sent, less than 30 seconds ago.",
            }
        return None

    def _whisper(self, token: Token, params: Json) -> Answer:
        """https://dev.twitch.tv/docs/api/reference/#send-whisper: what is too long is cut."""
        _require(token, "user:manage:whispers")
        sender = self._somebody(params, "from_user_id")
        to = self._chat.by_id(str(params.get("to_user_id", "")))
        text = str(params.get("message", ""))
        if token.user != sender:
            raise Refusal(401, "The ID in from_user_id must match the user ID in the access token")
        if not self.phone_verified:
            raise Refusal(401, "The sender does not have a verified phone number")
        if to is None:
            raise Refusal(404, "The ID in to_user_id was not found")
        if to == sender:
            raise Refusal(400, "A user cannot whisper to themself")
        if not text:
            raise Refusal(400, "The message is empty")
        most = MOST_WHISPERED if self._chat.have_whispered(to, sender) else MOST_CHARACTERS
        self._chat.whisper(sender, to, text[:most])
        return Answer(204, None)

    def _users(self, token: Token, params: Json) -> Answer:
        """Without parameters, whose token it is. Unknown people are left out."""
        ids = _several(params.get("id"))
        logins = [each.lower() for each in _several(params.get("login"))]
        if len(ids) + len(logins) > MOST_USERS or not all([*ids, *logins]):
            raise Refusal(400, "Invalid login names, emails or IDs in request")
        if not ids and not logins and token.user is None:
            raise Refusal(400, "Must provide an ID, login or OAuth token")
        found = [
            user
            for user in self._chat.people.values()
            if user.id in ids
            or user.login in logins
            or (not ids and not logins and user == token.user)
        ]
        return Answer(200, {"data": [_about(user) for user in found]})

    def _somebody(self, params: Json, name: str) -> User:
        user = self._chat.by_id(str(params.get(name, "")))
        if user is None:
            raise Refusal(400, f"The ID in {name} is missing or not valid")
        return user


Handler = Callable[[Token, Json], Answer]


def _require(token: Token, scope: str) -> None:
    """Helix answers a missing scope with 401, as it does a bad token; only the words differ."""
    if not token.allows(scope):
        raise Refusal(401, f"Missing scope: {scope}")


def _several(value: object) -> list[str]:
    if value is None:
        return []
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _about(user: User) -> Json:
    return {
        "id": user.id,
        "login": user.login,
        "display_name": user.name,
        "type": "",
        "broadcaster_type": "",
        "description": "",
        "profile_image_url": "",
        "offline_image_url": "",
        "view_count": 0,
        "created_at": "2020-01-01T00:00:00Z",
    }
