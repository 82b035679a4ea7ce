"""The last look at what leaves through a channel: no secret is in it, whatever it was put together
from."""

from __future__ import annotations

from ..secrets.inbound_redaction import redact_outgoing
from ..secrets.redaction import Redactor
from ..types.commit import OutboxRow, Outgoing
from .outbox import Render


def without_secrets(render: Render, redact: Redactor) -> Render:
    """The same words as `render` gives, without secrets: also those that were none yet when they
    were committed."""

    async def render_redacted(row: OutboxRow) -> Outgoing:
        return redact_outgoing(await render(row), redact)

    return render_redacted
