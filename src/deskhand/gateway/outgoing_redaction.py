"""Takes secrets out of everything that is sent on a channel."""

from __future__ import annotations

from ..secrets.inbound_redaction import redact_outgoing
from ..secrets.redaction import Redactor
from ..types.commit import OutboxRow, Outgoing
from .outbox import Render


def without_secrets(render: Render, redact: Redactor) -> Render:
    """Render as `render` does, without secrets, also those that were added after the row was
    committed."""

    async def render_redacted(row: OutboxRow) -> Outgoing:
        return redact_outgoing(await render(row), redact)

    return render_redacted
