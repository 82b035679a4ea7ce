"""Bytes whose encoding nobody declared: they are guessed, and nothing that is sure is guessed."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.tools.convert import convert_document
from deskhand.tools.documents.encodings import decode_text
from deskhand.tools.documents.guess import guess_encoding
from deskhand.workspace.scope import SandboxProvider

RUSSIAN = "Сегодня хорошая погода, и мы пойдём гулять в парк вместе с друзьями."
JAPANESE = "今日は天気がとても良いので、友達と一緒に公園へ行きます。昨日の夜は本を読みました。"
FOREIGN = [
    (RUSSIAN, "windows-1251"),
    (RUSSIAN, "koi8-r"),
    ("Сьогодні гарна погода, і ми підемо гуляти в парк разом із друзями.", "windows-1251"),
    ("Wczoraj poszliśmy do sklepu, żeby kupić chleb i mleko. Książka leży na półce.", "cp1250"),
    ("Včera jsme šli do obchodu koupit chléb. Příliš žluťoučký kůň úpěl ódy.", "cp1250"),
    ("Ο καιρός είναι πολύ ωραίος και θα πάμε στην παραλία με τους φίλους μας.", "cp1253"),
    ("Dün akşam ilginç bir kitap okudum. Işıklar söndüğünde şehir sessizleşti.", "cp1254"),
    ("מזג האוויר יפה מאוד ואנחנו הולכים לים עם החברים שלנו.", "cp1255"),
    ("الطقس جميل جدا وسنذهب إلى البحر مع أصدقائنا.", "cp1256"),
    ("วันนี้อากาศดีมาก เราจะไปเดินเล่นในสวนสาธารณะกับเพื่อน", "cp874"),
    (JAPANESE, "shift_jis"),
    (JAPANESE, "euc-jp"),
    ("今天天气很好，我们和朋友一起去公园散步。昨天晚上我读了一本有趣的书。", "gbk"),
    ("今天天氣很好，我們和朋友一起去公園散步。昨天晚上我讀了一本有趣的書。", "big5"),
    ("오늘은 날씨가 매우 좋아서 친구들과 함께 공원에 갑니다.", "euc-kr"),
]
WESTERN = [
    "Grüße €",
    "für",
    "un café",
    "Die Straße führt über die Brücke nach Österreich. „Grüße“, schrieb er.",
    "Le château fut bâti à l’époque où la forêt s’étendait jusqu’à la rivière.",
    "El niño comió una piña en la montaña. ¿Dónde está la estación más próxima?",
    "A informação não está disponível. Você precisa de autorização.",
    "På sjön låg en båt som ingen ägde. Människorna köpte bröd och mjölk.",
    "The café’s menu — “all day” — costs £5, and the naïve reader pays 10 € more.",
    "De ‘zoekopdracht’ is ‘geïndexeerd’ en ‘gereed’ voor uw ‘website’…",
    "Não foi possível",
    "Sláðu inn lykilorð",
]
CODECS_THAT_HIDE = ("utf-7", "hz", "iso2022-jp", "iso2022-kr", "cp037", "punycode", "utf-16-le")


@pytest.mark.parametrize(("text", "encoding"), FOREIGN)
def test_undeclared_encodings_are_guessed(text: str, encoding: str) -> None:
    assert decode_text(text.encode(encoding)) == text
    assert decode_text(("a plain line\n" * 10_000 + text).encode(encoding)).endswith(text)
    assert decode_text(f"<p lang=x>{text}</p>".encode(encoding), "utf-7") == f"<p lang=x>{text}</p>"


@pytest.mark.parametrize("text", WESTERN)
def test_western_texts_stay_what_they_were(text: str) -> None:
    assert decode_text(text.encode("cp1252")) == text


async def test_the_sandbox_guesses_too(room: SandboxProvider) -> None:
    assert (await convert_document(RUSSIAN.encode("koi8-r"), room)).text == RUSSIAN


@pytest.mark.parametrize(("text", "encoding"), FOREIGN)
def test_what_is_declared_is_not_guessed(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    assert decode_text(data, "iso-8859-1") == data.decode("cp1252", "replace")
    assert decode_text(text.encode(), "") == text


def test_without_the_extra_the_rest_is_windows_1252(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "deskhand.tools.documents.guess")
    monkeypatch.setitem(sys.modules, "chardetng_py", None)
    assert decode_text(WESTERN[2].encode("cp1252")) == WESTERN[2]
    assert decode_text(RUSSIAN[:7].encode("cp1251")) == "Ñåãîäíÿ"


def test_a_cut_off_character_is_no_other_encoding() -> None:
    for encoded in ("Grüße, Österreich".encode(), RUSSIAN.encode(), JAPANESE.encode()):
        for end in range(4, len(encoded)):
            assert decode_text(encoded[:end]) == encoded[:end].decode("utf-8", "replace")


@pytest.mark.parametrize(("text", "encoding"), FOREIGN)
def test_a_cut_off_character_does_not_change_the_guess(text: str, encoding: str) -> None:
    data = text.encode(encoding)
    for end in range(len(data) * 3 // 4, len(data)):
        assert decode_text(data[:end]) == data[:end].decode(guess_encoding(data), "replace")


@given(
    st.text(st.characters(max_codepoint=127)) | st.from_regex(r"(\+[A-Za-z0-9/]{2,8}-|~\{.{2}~\})+")
)
def test_ascii_is_never_anything_else(text: str) -> None:
    data = text.encode("ascii", "ignore")
    if b"\0" not in data:
        assert decode_text(data) == data.decode()


@given(st.binary(max_size=3_000))
def test_any_bytes_are_read(data: bytes) -> None:
    assert isinstance(decode_text(data), str)
    assert guess_encoding(data) not in CODECS_THAT_HIDE


@given(st.lists(st.text(st.characters(max_codepoint=127)), max_size=3), st.binary(min_size=2))
def test_two_bytes_are_too_few_to_go_by(around: list[str], beyond: bytes) -> None:
    ascii_bytes = [each.encode() for each in (*around, "", "", "")]
    first, second = (byte | 0x80 for byte in beyond[:2])
    data = b"%s%c%s%c%s" % (ascii_bytes[0], first, ascii_bytes[1], second, ascii_bytes[2])
    assert guess_encoding(data) == "cp1252"


@given(
    st.sampled_from([text.encode(encoding) for text, encoding in FOREIGN])
    | st.binary(min_size=1, max_size=400),
    st.binary(max_size=200),
)
def test_only_the_beginning_is_looked_at(pattern: bytes, after: bytes) -> None:
    """So the time of a guess does not grow with what somebody sends."""
    head = b"\xe9" + (pattern * (16_384 // len(pattern) + 1))[:16_383]
    assert guess_encoding(head + after * 50) == guess_encoding(head)
