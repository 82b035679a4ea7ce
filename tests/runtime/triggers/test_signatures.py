"""A webhook is taken from who holds its secret, in time, and from nobody else."""

from __future__ import annotations

import hmac
from base64 import b64encode

import pytest

from deskhand.runtime.triggers.signatures import WINDOW_S, delivered, signed
from deskhand.types.errors import Refused

SECRET, BODY, NOW = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", b'{"test": 2432232314}', 1_614_265_330.0


def test_the_example_of_the_standard() -> None:
    """The vector of the Standard Webhooks specification and its libraries."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    assert delivered(SECRET, headers, BODY, NOW) == "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert signed(SECRET, headers["webhook-id"], NOW, BODY) == headers
    old = "v1,AAAA " + headers["webhook-signature"]
    assert delivered(SECRET, headers | {"webhook-signature": old}, BODY, NOW), "two while a secret is changed"


def test_what_is_changed_or_late_or_unsigned_is_refused() -> None:
    good = signed("a secret of ours", "one", NOW, BODY)
    assert delivered("a secret of ours", good, BODY, NOW + WINDOW_S) == "one"
    for secret, headers, body, now, why in (
        ("", good, BODY, NOW, "no secret"),
        ("another secret", good, BODY, NOW, "does not fit"),
        ("a secret of ours", good, BODY + b" ", NOW, "does not fit"),
        ("a secret of ours", good | {"webhook-id": "two"}, BODY, NOW, "does not fit"),
        ("a secret of ours", good | {"webhook-timestamp": str(int(NOW) + 1)}, BODY, NOW, "does not fit"),
        ("a secret of ours", good | {"webhook-signature": "v1,"}, BODY, NOW, "does not fit"),
        ("a secret of ours", good | {"webhook-signature": "v1,ü"}, BODY, NOW, "does not fit"),
        ("a secret of ours", good | {"webhook-signature": ""}, BODY, NOW, "does not fit"),
        ("a secret of ours", good | {"webhook-timestamp": "1e9"}, BODY, NOW, "missing"),
        ("a secret of ours", good | {"webhook-id": ""}, BODY, NOW, "missing"),
        ("a secret of ours", good, BODY, NOW + WINDOW_S + 1, "minutes"),
        ("a secret of ours", good, BODY, NOW - WINDOW_S - 1, "minutes"),
        ("a secret of ours", {}, BODY, NOW, "not signed"),
    ):
        with pytest.raises(Refused, match=why):
            delivered(secret, headers, body, now)


def test_the_form_of_github() -> None:
    """The vector of GitHub's page "Validating webhook deliveries". The same bytes are the same delivery for ever."""
    secret, body = "It's a Secret to Everybody", b"Hello, World!"
    code = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    one = delivered(secret, {"x-hub-signature-256": code}, body, NOW)
    assert one == delivered(secret, {"x-hub-signature-256": code}, body, NOW + 10**8)
    other = f"sha256={hmac.digest(secret.encode(), b'other', 'sha256').hex()}"
    assert delivered(secret, {"x-hub-signature-256": other}, b"other", NOW) != one
    for wrong in (code.upper(), code[:-1], "sha1=00", "", b64encode(b"x").decode(), "sha256=ü"):
        with pytest.raises(Refused):
            delivered(secret, {"x-hub-signature-256": wrong}, body, NOW)
