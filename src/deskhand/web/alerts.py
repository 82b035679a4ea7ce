"""Alerts: what owners were told unasked, for those whom no channel reached."""

from __future__ import annotations

from .alert_views import AlertView
from .routing import Call, Endpoint


async def list_alerts(call: Call) -> list[AlertView]:
    return await call.web.admin.alerts()


async def mark_alerts_seen(call: Call) -> None:
    await call.web.admin.mark_alerts_seen()


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/alerts",
        "admin",
        list_alerts,
        "List the latest alerts",
        returns=list[AlertView],
        tag="system",
    ),
    Endpoint(
        "POST",
        "/api/alerts/seen",
        "admin",
        mark_alerts_seen,
        "Mark all alerts as seen",
        status=204,
        tag="system",
    ),
)
