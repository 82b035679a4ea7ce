"""Hands messages to push services, over their protocol (RFC 8030)."""

from __future__ import annotations

from collections.abc import Sequence

from ..net.client import Fetched, Net, NetLimits, OutboundRequest
from ..net.egress import USUAL_PORTS, is_host_covered, parse_egress_host
from ..net.url import Url, parse_url
from ..types.clock import Clock
from ..types.errors import AddressRefused, NetError, PushFailed, PushGone, PushLater, Refused
from ..types.push import MAX_ENDPOINT_CHARS, PushDevice, PushSubscription
from .encryption import check_subscription, encrypt
from .notices import Notice, encode_notice
from .vapid import VapidKey

KNOWN_SERVICES = (
    "fcm.googleapis.com",
    "*.push.apple.com",
    "*.notify.windows.com",
    "*.push.services.mozilla.com",
)
"""The push services of Chrome, Safari, Edge and Firefox."""
KEPT_S = 24 * 3600
"""So long a push service holds a message for a browser that is switched off."""
LIMITS = NetLimits(body_bytes=20_000, total_s=20.0, idle_s=10.0)
MAX_WAIT_S = 3600.0


class WebPusher:
    """Implements `devices.Pusher`. `seed` is the key of this Deskhand, and `services` are push
    services that its settings allow besides the known ones. Raises ConfigError for a key that is
    none."""

    def __init__(self, net: Net, clock: Clock, seed: str, services: Sequence[str]) -> None:
        self._net = _allow_services(net, services)
        self._clock = clock
        self._key = VapidKey(seed)
        self._services = services

    @property
    def public_key(self) -> str:
        return self._key.public

    def check(self, subscription: PushSubscription) -> None:
        check_endpoint(subscription.endpoint, self._services)
        check_subscription(subscription)

    async def push(self, device: PushDevice, notice: Notice) -> None:
        try:
            url = check_endpoint(device.subscription.endpoint, self._services)
        except Refused as error:  # the settings do not allow it any more
            raise PushFailed(str(error)) from error
        headers = {
            "authorization": self._key.make_header(url.origin, device.contact, self._clock.now()),
            "content-encoding": "aes128gcm",
            "content-type": "application/octet-stream",
            "ttl": str(KEPT_S),
            "urgency": "high" if notice.is_question else "normal",
        }
        body = encrypt(encode_notice(notice), device.subscription)
        try:
            answer = await self._net.send(OutboundRequest(url, headers, "POST", body), LIMITS)
        except NetError as error:
            raise PushLater(str(error)) from error
        _check_answer(url, answer)


def _allow_services(net: Net, services: Sequence[str]) -> Net:
    """A push service that the owner names may be in their own network."""
    for host in map(parse_egress_host, services):
        for port in host.ports or USUAL_PORTS:
            net = net if host.below else net.with_allowed_host(host.host, port)
    return net


def check_endpoint(endpoint: str, more: Sequence[str]) -> Url:
    """The address of a browser at its push service. Raises Refused for a service that is neither
    known nor one of `more`, which are `host` or `host:port`."""
    try:
        if len(endpoint) > MAX_ENDPOINT_CHARS:
            raise AddressRefused(f"it has more than {MAX_ENDPOINT_CHARS:,} characters.")
        url = parse_url(endpoint)
    except AddressRefused as error:
        raise Refused(f"The browser's push service has no address: {error}") from error
    if is_host_covered([parse_egress_host(each) for each in more], url.host, url.port):
        return url
    known = [parse_egress_host(each) for each in KNOWN_SERVICES]
    if url.scheme != "https" or not is_host_covered(known, url.host, url.port):
        raise Refused(
            f"The push service {url.authority} is not known. Where you trust it, allow it: "
            f"deskhand config set web.push.services '[\"{url.authority}\"]'"
        )
    return url


def _check_answer(url: Url, answer: Fetched) -> None:
    if 200 <= answer.status < 300:
        return
    told = f"{url.host} answered {answer.status}"
    if answer.status in (404, 410):
        raise PushGone(f"{told}: the browser has taken its permission back.")
    if answer.status == 429 or answer.status >= 500:
        wait = answer.headers.get("retry-after", "")
        wait_s = float(wait) if wait.isascii() and wait.isdigit() and len(wait) < 6 else 0.0
        raise PushLater(f"{told}: it is to be tried later.", min(wait_s, MAX_WAIT_S))
    said = " ".join(answer.body[:200].decode(errors="replace").split())
    raise PushFailed(f"{told}: {said or 'it gave no reason'}")
