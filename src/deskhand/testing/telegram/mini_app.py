"""What Telegram hands to a page that it opens, signed as Telegram signs it."""

from __future__ import annotations

import hmac
import json
from urllib.parse import urlencode

ANN = {"id": 77, "first_name": "Ann & Bo=b", "language_code": "de"}


def sign_init_data(token: str, at: float, **more: str) -> str:
    """The `initData` of a page that the bot with this token has opened for Ann at this time; `more`
    are further fields, or others in the place of these."""
    fields = {
        "query_id": "AAF",
        "user": json.dumps(ANN),
        "auth_date": str(int(at)),
        "signature": "c2ln",
        **more,
    }
    text = "\n".join(f"{name}={value}" for name, value in sorted(fields.items()))
    key = hmac.digest(b"WebAppData", token.encode(), "sha256")
    return urlencode({**fields, "hash": hmac.new(key, text.encode(), "sha256").hexdigest()})
