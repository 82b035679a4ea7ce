"""The Telegram of the tests is one that two independent clients take for the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
import telegram
from telegram.error import BadRequest, Conflict, Forbidden, RetryAfter, TimedOut

from deskhand.testing.telegram.server import TelegramServer

ANN = 77
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40


@pytest.fixture
async def server() -> AsyncIterator[TelegramServer]:
    async with TelegramServer() as started:
        yield started


def ptb(server: TelegramServer) -> telegram.Bot:
    return telegram.Bot(server.token, server.base_url, server.base_file_url)


def gram(server: TelegramServer) -> Any:
    """It is imported here: that takes seconds, in each process that only looks for tests too."""
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer

    root = server.base_url.removesuffix("/bot")
    return Bot(server.token, AiohttpSession(api=TelegramAPIServer.from_base(root)))


async def test_python_telegram_bot(server: TelegramServer) -> None:
    chats = server.chats
    asked = chats.says(ANN, "hello")
    buttons = telegram.InlineKeyboardMarkup(
        [[telegram.InlineKeyboardButton("yes", callback_data="a:1")]]
    )
    async with ptb(server) as bot:
        me = await bot.get_me()
        assert (me.id, me.username, me.is_bot) == (4200, "desk_bot", True)
        (update,) = await bot.get_updates(timeout=1)
        assert (
            update.message is not None
            and update.message.text == "hello"
            and update.message.from_user is not None
        )
        assert update.message.from_user.id == ANN
        bold = telegram.MessageEntity("bold", 0, 2)
        sent = await bot.send_message(
            ANN, "hi 🙂", entities=[bold], reply_markup=buttons, reply_to_message_id=asked.id
        )
        assert sent.entities == (bold,) and sent.reply_to_message is not None
        query = chats.presses(ANN, chats.last(ANN), "yes")
        (pressed,) = await bot.get_updates(update.update_id + 1)
        assert pressed.callback_query is not None and pressed.callback_query.data == "a:1"
        await bot.answer_callback_query(query, "noted")
        assert chats.answers[query] == {"text": "noted", "alert": False}
        edited = await bot.edit_message_text("bye", ANN, sent.message_id)
        assert (
            isinstance(edited, telegram.Message)
            and edited.text == "bye"
            and edited.reply_markup is None
        )
        assert chats.said(ANN) == ["bye"] and chats.last(ANN).edits == ["hi 🙂"]


async def test_python_telegram_bot_and_everything_else(server: TelegramServer) -> None:
    chats = server.chats
    asked = chats.says(ANN, "hello")
    async with ptb(server) as bot:
        sent = await bot.send_message(ANN, "hi")
        buttons = telegram.InlineKeyboardMarkup(
            [[telegram.InlineKeyboardButton("yes", callback_data="a:1")]]
        )
        await bot.edit_message_reply_markup(ANN, sent.message_id, reply_markup=buttons)
        await bot.send_photo(ANN, PNG, caption="a picture")
        document = await bot.send_document(ANN, b"text", filename="notes.txt")
        assert document.document is not None and document.document.file_name == "notes.txt"
        voice = await bot.send_voice(ANN, b"OggS")
        assert voice.voice is not None and chats.last(ANN).file == b"OggS"
        file = await bot.get_file(voice.voice.file_id)
        assert bytes(await file.download_as_bytearray()) == b"OggS"
        assert await bot.send_chat_action(ANN, "typing") and chats.actions == [(ANN, "typing")]
        assert await bot.set_message_reaction(ANN, asked.id, "👍")
        assert await bot.set_my_commands([("stop", "Stop it")])
        assert (await bot.get_chat(ANN)).type == "private"
        assert (await bot.get_chat_member(ANN, ANN)).status == "member"
        assert await bot.delete_message(ANN, sent.message_id)
        await bot.send_message(ANN, "quietly", disable_notification=True)
        assert chats.last(ANN).silent
        chats.group(-100, reactions=["👍"])
        theirs = chats.says(ANN, "hello", -100)
        with pytest.raises(BadRequest, match="can't be deleted"):
            await bot.delete_message(-100, theirs.id)
        with pytest.raises(BadRequest, match=r"(?i)reaction_invalid"):
            await bot.set_message_reaction(-100, theirs.id, "👀")
        assert await bot.send_message_draft(ANN, 1, "half a se")
        chats.reacts(ANN, asked, ["👍"])
        chats.edits(asked, "hello again")
        reacted, rewritten = await bot.get_updates(3, allowed_updates=telegram.Update.ALL_TYPES)
        assert reacted.message_reaction is not None and rewritten.edited_message is not None
        assert await bot.set_webhook("https://example.test/hook")
        assert (await bot.get_webhook_info()).url == "https://example.test/hook"
        with pytest.raises(Conflict):
            await bot.get_updates()
        assert await bot.delete_webhook()


async def test_aiogram(server: TelegramServer) -> None:
    from aiogram.types import BufferedInputFile
    from aiogram.types import Message as SentMessage

    chats = server.chats
    chats.group(-100, forum=True)
    chats.says(ANN, "hello", -100, message_thread_id=5, is_topic_message=True)
    post = chats.sends_file(ANN, PNG, kind="photo", caption="look")
    async with gram(server) as bot:
        assert (await bot.get_me()).username == "desk_bot"
        text, photo = await bot.get_updates(timeout=1)
        assert text.message is not None and text.message.message_thread_id == 5
        assert photo.message is not None and photo.message.photo and photo.message.caption == "look"
        found = await bot.download(photo.message.photo[-1].file_id)
        assert found is not None and found.read() == PNG == post.file
        sent = await bot.send_message(-100, "hi", message_thread_id=5)
        edited = await bot.edit_message_text("ho", chat_id=-100, message_id=sent.message_id)
        assert isinstance(edited, SentMessage) and edited.text == "ho"
        document = await bot.send_document(
            ANN, BufferedInputFile(b"text", "notes.txt"), caption="notes"
        )
        assert document.document is not None and chats.last(ANN).file == b"text"
        assert await bot.send_chat_action(ANN, "typing")
        assert (await bot.get_chat(-100)).title == "Family"
        chats.reacts(ANN, chats.last(ANN), ["🔥"], ["👍"])
        (reacted,) = await bot.get_updates(photo.update_id + 1)
        assert reacted.message_reaction is not None and reacted.message_reaction.user is not None


async def test_what_is_not_confirmed_comes_again(server: TelegramServer) -> None:
    server.chats.says(ANN, "one")
    server.chats.says(ANN, "two")
    async with ptb(server) as bot:
        first = await bot.get_updates(limit=1)
        assert [u.update_id for u in await bot.get_updates()] == [1, 2]
        assert [u.update_id for u in await bot.get_updates(first[0].update_id + 1)] == [2]
        assert [u.update_id for u in await bot.get_updates()] == [2]
        assert await bot.get_updates(3) == ()
        server.redeliver()
        assert [u.update_id for u in await bot.get_updates()] == [2]


async def test_faults(server: TelegramServer) -> None:
    from aiogram.exceptions import TelegramConflictError, TelegramRetryAfter

    """The clients recognise each of them."""
    server.chats.says(ANN, "hello")
    async with ptb(server) as bot, gram(server) as other:
        server.fail("sendMessage", 429, retry_after=7, times=2)
        with pytest.raises(RetryAfter):
            await bot.send_message(ANN, "x")
        with pytest.raises(TelegramRetryAfter) as flood:
            await other.send_message(ANN, "x")
        assert flood.value.retry_after == 7
        server.fail("getUpdates", 409, "Conflict: terminated by other getUpdates request", times=2)
        with pytest.raises(Conflict):
            await bot.get_updates()
        with pytest.raises(TelegramConflictError):
            await other.get_updates()
        assert server.chats.said(ANN) == []
        server.lose("sendMessage")
        with pytest.raises(telegram.error.NetworkError):
            await bot.send_message(ANN, "cut off")
        server.hang("sendMessage")
        with pytest.raises(TimedOut):
            await bot.send_message(ANN, "never answered", read_timeout=0.1)
        assert server.chats.said(ANN) == ["cut off", "never answered"]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"text": "x" * 4097}, "too long"),
    ({"text": "🙂" * 2049}, "too long"),
    ({"text": " "}, "empty"),
    ({"text": "x", "chat_id": 1}, "chat not found"),
    ({"text": "🙂", "entities": [telegram.MessageEntity("bold", 1, 1)]}, "ENTITY_BOUNDS"),
    ({"text": "x", "entities": [telegram.MessageEntity("bold", 0, 2)]}, "ENTITY_BOUNDS"),
    ({"text": "x", "reply_to_message_id": 99}, "replied not found"),
]


@pytest.mark.parametrize(("arguments", "why"), REFUSED)
async def test_what_is_refused(arguments: dict[str, Any], why: str, server: TelegramServer) -> None:
    server.chats.says(ANN, "hello")
    async with ptb(server) as bot:
        with pytest.raises(BadRequest, match=f"(?i){why}"):
            await bot.send_message(**{"chat_id": ANN, **arguments})


async def test_edits_that_are_refused_and_people_who_left(server: TelegramServer) -> None:
    from aiogram.exceptions import TelegramBadRequest, TelegramForbiddenError
    from aiogram.types import BufferedInputFile

    theirs = server.chats.says(ANN, "hello")
    async with ptb(server) as bot, gram(server) as other:
        sent = await bot.send_message(ANN, "one")
        for number, why in (
            (sent.message_id, "not modified"),
            (99, "not found"),
            (theirs.id, "can't be edited"),
        ):
            with pytest.raises(BadRequest, match=f"(?i){why}"):
                await bot.edit_message_text("one", ANN, number)
        button = telegram.InlineKeyboardButton("x", callback_data="x" * 65)
        with pytest.raises(BadRequest, match=r"(?i)button_data"):
            await bot.send_message(ANN, "x", reply_markup=telegram.InlineKeyboardMarkup([[button]]))
        with pytest.raises(BadRequest, match=r"(?i)query is too old"):
            await bot.answer_callback_query("1")
        with pytest.raises(TelegramBadRequest, match="IMAGE_PROCESS"):
            await other.send_photo(ANN, BufferedInputFile(b"no picture", "x.png"))
        server.chats.blocked.add(ANN)
        with pytest.raises(Forbidden):
            await bot.send_message(ANN, "x")
        with pytest.raises(TelegramForbiddenError):
            await other.send_message(ANN, "x")


async def test_a_later_poll_ends_an_earlier_one(server: TelegramServer) -> None:
    ended: list[str] = []

    async def first() -> None:
        try:
            async with ptb(server) as bot:
                await bot.get_updates(timeout=20)
        except Conflict as error:
            ended.append(str(error))

    async with ptb(server) as bot, anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        while not any(method == "getUpdates" for method, _ in server.calls):
            await anyio.sleep(0.01)
        await bot.get_updates(timeout=0)
        with anyio.fail_after(5):
            while not ended:
                await anyio.sleep(0.01)
    assert "other getUpdates" in ended[0]
