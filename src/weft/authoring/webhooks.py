"""Webhooks: hooks that environment variables declare, and whose steps send events to other services."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from weft.authoring.hooks import HookDecorator, HookFilter
from weft.authoring.policies import Retry
from weft.authoring.registrations import Registrations
from weft.authoring.steps import Step
from weft.core.run.hook_events import HookEvent
from weft.extras import require
from weft.runtime.service import RunService
from weft.settings import variable

if TYPE_CHECKING:
    from weft.server.approvals.notifier import EventSender
    from weft.server.settings import WebhookSettings

NAMES = ("weft.events", "weft.approvals")
VARIABLES = (
    *("WEFT_EVENTS_URL", "WEFT_EVENTS_SECRET", "WEFT_EVENTS_KINDS", "WEFT_EVENTS_WHERE"),
    *("WEFT_APPROVALS_URL", "WEFT_APPROVALS_SECRET"),
)
RETRIES = Retry(attempts=300, delay="1s", max_delay="5m")
"""About a day. After that, the delivery is a dead letter."""
TIMEOUT = "30s"


class DeclaredWebhooks:
    """The webhooks of one app. They are read again whenever the app is hosted."""

    def __init__(self, registered: Registrations) -> None:
        self._registered = registered
        self._sender: EventSender | None = None

    def declare(self) -> None:
        """Declare the webhooks that environment variables name. Raises UsageError, BadHook, MissingExtra."""
        table = self._registered.hooks.table
        for name in NAMES:
            table.hooks.pop(name, None)
        self._sender = None
        if not any(map(variable, VARIABLES)):
            return
        require("server", "Sending events to another service")
        from weft.server.approvals.notifier import EventSender  # noqa: PLC0415 - few programs send events
        from weft.server.settings import read_webhook_settings  # noqa: PLC0415
        from weft.steps.http import guard, wire  # noqa: F401, PLC0415 - slow; the first event must not wait for them

        settings = read_webhook_settings()
        self._sender = EventSender(settings)
        for one in settings:
            self._declare(one)

    def _declare(self, settings: WebhookSettings) -> None:
        hooks = self._registered.hooks
        declare = HookDecorator(
            self._registered, tuple(settings.kinds), HookFilter(where=settings.where), settings.name
        )
        declare(self._registered.find_step(settings.name) or self._add_step(settings.name))
        # People are asked to review bulks, too.
        hooks.table.hooks[settings.name] = msgspec.structs.replace(hooks.table.hooks[settings.name], internal=True)

    def _add_step(self, name: str) -> Step[[HookEvent], str]:
        async def send(event: HookEvent) -> str:
            assert self._sender is not None, "a webhook is performed by a host that declares it"
            return await self._sender.send(name, event)

        return self._registered.add_step(send, name=name, retries=RETRIES, timeout=TIMEOUT)

    def attach(self, service: RunService) -> None:
        """Use the service of the host that is about to start."""
        if self._sender is not None:
            self._sender.service = service

    def begin(self) -> None:
        """Tell the receiver of questions of those that were asked before there was one. Called when the host runs."""
        hook, sender = self._registered.hooks.table.hooks.get(NAMES[1]), self._sender
        if hook is not None and sender is not None and sender.service.local is not None:
            sender.service.local.spawn(sender.deliver_earlier(hook))

    async def close(self) -> None:
        """Close all connections."""
        if self._sender is not None:
            await self._sender.close()
