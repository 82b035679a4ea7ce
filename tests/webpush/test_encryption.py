"""Encryption for one browser, and the token of who sends: against the examples of the RFCs."""

from __future__ import annotations

import jwt
import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from deskhand.testing.push_server import PushBrowser
from deskhand.types.errors import ConfigError, Refused
from deskhand.types.push import PushSubscription
from deskhand.web.agent_signatures import from_base64url, to_base64url
from deskhand.webpush.encryption import (
    CURVE,
    MAX_PLAIN_BYTES,
    PADDED_TO,
    check_subscription,
    encrypt,
)
from deskhand.webpush.vapid import VapidKey, make_seed

# RFC 8291, section 5 and appendix A
TEXT = b"When I grow up, I want to be a watermelon"
THEIRS = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
OURS = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS"
    "6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Q"
    "ulcy4a-fN"
)


def subscription_of(browser: PushBrowser) -> PushSubscription:
    return PushSubscription(browser.endpoint, browser.point, browser.auth)


def test_the_example_of_the_rfc() -> None:
    ours = ec.derive_private_key(int.from_bytes(from_base64url(OURS)), CURVE)
    theirs = PushSubscription("", from_base64url(THEIRS), from_base64url(AUTH))
    made = encrypt(TEXT, theirs, salt=from_base64url(SALT), ours=ours, padded_to=0)
    assert to_base64url(made) == BODY


@given(st.binary(max_size=MAX_PLAIN_BYTES))
def test_its_browser_alone_reads_it(text: bytes) -> None:
    browser, other = PushBrowser("https://push.example/1"), PushBrowser("https://push.example/2")
    made = encrypt(text, subscription_of(browser))
    assert browser.decrypt(made) == text and len(made) <= 4096
    with pytest.raises(InvalidTag):
        other.decrypt(made)


def test_no_two_are_alike_and_the_length_says_little() -> None:
    to = subscription_of(PushBrowser("https://push.example/1"))
    one, other = encrypt(b"yes", to), encrypt(b"yes", to)
    assert one[:16] != other[:16] and one[21:86] != other[21:86] and one[86:] != other[86:]
    lengths = {len(encrypt(bytes(n), to)) for n in range(PADDED_TO)}
    assert len(lengths) == 1


@pytest.mark.parametrize(
    ("key", "auth", "told"),
    [
        (b"\x04" + bytes(64), bytes(16), "no point"),
        (b"\x04" + bytes(63), bytes(16), "64 bytes, not 65"),
        (from_base64url(THEIRS), bytes(15), "15 bytes, not 16"),
    ],
    ids=["no point", "too short", "a short secret"],
)
def test_what_cannot_be_encrypted_for_is_refused(key: bytes, auth: bytes, told: str) -> None:
    with pytest.raises(Refused, match=told):
        check_subscription(PushSubscription("https://push.example", key, auth))


def test_the_token_says_who_sends_and_to_whom() -> None:
    key = VapidKey(make_seed())
    header = key.make_header("https://push.example", "mailto:ann@example.org", 1_000_000.0)
    token = header.removeprefix("vapid t=").partition(",")[0]
    public = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, from_base64url(key.public))
    claims = jwt.decode(
        token,
        public,
        algorithms=["ES256"],
        audience="https://push.example",
        options={"verify_exp": False},
    )
    assert claims == {
        "aud": "https://push.example",
        "exp": 1_000_000 + 12 * 3600,
        "sub": "mailto:ann@example.org",
    }
    assert header.endswith(f", k={key.public}")
    assert jwt.get_unverified_header(token) == {"typ": "JWT", "alg": "ES256"}


@pytest.mark.parametrize("seed", ["", "short", "!" * 43, "A" * 43])
def test_a_key_that_is_none_is_told(seed: str) -> None:
    with pytest.raises(ConfigError, match="32 bytes in base64url"):
        VapidKey(seed)
