"""A webhook is taken from who holds its secret, in time, and from nobody else."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.jobs.triggers.signatures import WINDOW_S, sign_webhook, verify_webhook
from deskhand.types.errors import Refused

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
NOW = 1_614_265_330.0


def test_the_example_of_the_standard() -> None:
    """The vector of the Standard Webhooks specification and its libraries."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert verify_webhook(SECRET, headers, BODY, NOW) == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert sign_webhook(SECRET, headers["webhook-id"], NOW, BODY) == headers
    old = "v1,AAAA " + headers["webhook-signature"]
    assert verify_webhook(SECRET, headers | {"webhook-signature": old}, BODY, NOW), (
        "two while a secret is changed"
    )


def test_what_is_changed_or_late_or_unsigned_is_refused() -> None:
    good = sign_webhook("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", "one", NOW, BODY)
    assert verify_webhook("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", good, BODY, NOW + WINDOW_S) == "one"
    for secret, headers, body, now, why in (
        ("", good, BODY, NOW, "no secret"),
        ("whsec_YW5vdGhlcg==", good, BODY, NOW, "does not match"),
        ("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", good, BODY + b" ", NOW, "does not match"),
        (
            "whsec_YSBzZWNyZXQgb2Ygb3Vycw==",
            good | {"webhook-id": "two"},
            BODY,
            NOW,
            "does not match",
        ),
        (
            "whsec_YSBzZWNyZXQgb2Ygb3Vycw==",
            good | {"webhook-timestamp": str(int(NOW) + 1)},
            BODY,
            NOW,
            "does not match",
        ),
        (
            "whsec_YSBzZWNyZXQgb2Ygb3Vycw==",
            good | {"webhook-signature": "v1,"},
            BODY,
            NOW,
            "does not match",
        ),
        (
            "whsec_YSBzZWNyZXQgb2Ygb3Vycw==",
            good | {"webhook-signature": "v1,ü"},
            BODY,
            NOW,
            "does not match",
        ),
        (
            "whsec_YSBzZWNyZXQgb2Ygb3Vycw==",
            good | {"webhook-signature": ""},
            BODY,
            NOW,
            "does not match",
        ),
        (
            "whsec_YSBzZWNyZXQgb2Ygb3Vycw==",
            good | {"webhook-timestamp": "1e9"},
            BODY,
            NOW,
            "missing",
        ),
        ("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", good | {"webhook-id": ""}, BODY, NOW, "missing"),
        ("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", good, BODY, NOW + WINDOW_S + 1, "minutes"),
        ("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", good, BODY, NOW - WINDOW_S - 1, "minutes"),
        ("whsec_YSBzZWNyZXQgb2Ygb3Vycw==", {}, BODY, NOW, "not signed"),
    ):
        with pytest.raises(Refused, match=why):
            verify_webhook(secret, headers, body, now)


def test_the_form_of_github() -> None:
    """The vector of GitHub's page "Validating webhook deliveries". The same bytes are the same
    delivery for ever."""
    secret = "It's a Secret to Everybody"
    body = b"Hello, World!"
    code = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    one = verify_webhook(secret, {"x-hub-signature-256": code}, body, NOW)
    assert one == verify_webhook(secret, {"x-hub-signature-256": code}, body, NOW + 10**8)
    other = f"sha256={hmac.digest(secret.encode(), b'other', 'sha256').hex()}"
    assert verify_webhook(secret, {"x-hub-signature-256": other}, b"other", NOW) != one
    for wrong in (code.upper(), code[:-1], "sha1=00", "", b64encode(b"x").decode(), "sha256=ü"):
        with pytest.raises(Refused):
            verify_webhook(secret, {"x-hub-signature-256": wrong}, body, NOW)


@given(
    st.binary(max_size=40),
    st.sampled_from(["a-secret-of-both", "whsec_YQ==", "whsec_no base64", SECRET]),
)
def test_a_delivery_of_one_form_is_none_of_the_other(body: bytes, secret: str) -> None:
    """What was signed with a time is sent again, long after, in the form that has none; and the
    other way round."""
    keys = [secret.encode(), *([b64decode(secret[6:])] if secret in ("whsec_YQ==", SECRET) else [])]
    whole = b"msg_1.1000." + body
    taken = set[str]()
    for key in keys:
        code = hmac.digest(key, whole, "sha256")
        once = {
            "webhook-id": "msg_1",
            "webhook-timestamp": "1000",
            "webhook-signature": f"v1,{b64encode(code).decode()}",
        }
        again = {"x-hub-signature-256": f"sha256={code.hex()}"}
        for headers, sent, now in (
            (once, body, 1000.0),
            (again, whole, 9e9),
            (once | again, whole, 9e9),
        ):
            with suppress(Refused):
                taken.add(
                    "time" if verify_webhook(secret, headers, sent, now) == "msg_1" else "bytes"
                )
    assert len(taken) <= 1
