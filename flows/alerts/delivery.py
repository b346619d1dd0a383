"""Delivers events of alerts, with retries, until they are delivered or given up.

An event is claimed for a time before it is sent. A process that is killed while it sends leaves it
to be sent again, under the same id: delivery is at least once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from domain.alerts import AlertDelivery, AlertEvent, AlertSettings, DeliveryState
from domain.errors import DatabaseError
from flows.alerts.command import run_command
from flows.alerts.deliveries import Deliveries
from flows.alerts.webhook import NotDelivered, send_webhook
from store.database import Store
from store.queries.alerts import claim_events, postpone_events, settle_event
from views.alerts import shown_event

AT_ONCE = 4
"""Events that are delivered at a time, each of another alert."""
FIRST_WAIT_S, WAIT_FACTOR, MAX_WAIT_S = 5.0, 4.0, 3600.0
"""The wait after the first failed attempt, how it grows, and its limit."""
MARGIN_S = 60.0
"""An event stays claimed for so long after its time limit, for resolving names."""


class Deliverer:
    """Delivers the events of the alerts whose delivery is on this machine."""

    def __init__(self, store: Store, settings: AlertSettings) -> None:
        self._store, self._settings = store, settings
        self.deliveries = Deliveries(store)

    def deliver_due(self, stopped: Callable[[], bool] = lambda: False) -> int:
        """Deliver what is due, batch by batch; return how many events were delivered.

        Raises:
            DatabaseError: the database is gone; claimed events are due again later.
        """
        delivered = 0
        while not stopped() and (events := self._claim()):
            with ThreadPoolExecutor(AT_ONCE) as pool:
                delivered += sum(pool.map(self._deliver, events))
        return delivered

    def send(self, event: AlertEvent, delivery: AlertDelivery, *, is_test: bool = False) -> None:
        """Send one event once.

        Raises:
            NotDelivered: it was not accepted.
            NotFound: what shows it was deleted in the meantime.
        """
        body = self.body(event, is_test=is_test)
        settings = self._settings
        if delivery.webhook is None:
            return run_command(delivery.command, body, settings.command_s)
        limit_s, private = settings.webhook_s, settings.private_hosts
        return send_webhook(delivery.webhook, event.id, body, delivery.secret, limit_s, private)

    def body(self, event: AlertEvent, *, is_test: bool = False) -> bytes:
        """Return an event as JSON."""
        shown = shown_event(self._store, event)
        return json.dumps(shown.body() | {"test": is_test}, ensure_ascii=False).encode()

    def _claim(self) -> list[AlertEvent]:
        alerts = self.deliveries.alerts()
        if not alerts:
            return []
        lease_s = max(self._settings.webhook_s, self._settings.command_s) + MARGIN_S
        with self._store.begin() as session:
            return claim_events(session, alerts, AT_ONCE, lease_s)

    def _deliver(self, event: AlertEvent) -> bool:
        error = self._error_of_sending(event)
        with self._store.begin() as session:
            if error is None:
                settle_event(session, event.id, DeliveryState.DELIVERED)
            elif event.attempts >= self._settings.attempts:
                settle_event(session, event.id, DeliveryState.FAILED, error)
            else:
                postpone_events(session, event, wait_s(event.attempts), error)
        return error is None

    def _error_of_sending(self, event: AlertEvent) -> str | None:
        delivery = self.deliveries.find(event.alert.id)
        if delivery is None:
            return "where it goes is not known on this machine"
        try:
            self.send(event, delivery)
        except NotDelivered as error:
            return str(error)
        except DatabaseError:
            raise
        except Exception as error:  # noqa: BLE001 - one odd delivery must not stop the others
            return f"it could not be sent: {type(error).__name__}"
        return None


def wait_s(attempts: int) -> float:
    """Return the seconds to wait after so many failed attempts."""
    return float(min(MAX_WAIT_S, FIRST_WAIT_S * WAIT_FACTOR ** min(attempts - 1, 20)))
