"""Where the events of alerts go: files in the data directory of the machine they were added on.

They are not in the database, so nobody who can write to it, and no back-up, starts a program here
or learns an address or a secret. Each database has a folder of its own, since databases may share a
data directory.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from domain.alerts import AlertDelivery
from store.database import Store
from store.files import atomic_file, make_private
from store.queries.alerts import list_alerts
from store.queries.blobs import own_library_id

MAX_BYTES = 64 * 1024
NEW_S = 600


class Deliveries:
    """The deliveries of a library's alerts on this machine."""

    def __init__(self, store: Store) -> None:
        self._store = store
        with store.begin() as session:
            self._folder = store.home.alerts / own_library_id(session)

    def put(self, alert: str, delivery: AlertDelivery) -> None:
        """Store where events of an alert go, readable by this user only."""
        make_private(self._store.home.alerts)
        make_private(self._folder)
        with atomic_file(self._path(alert)) as part:
            part.write_text(delivery.model_dump_json(exclude_none=True), encoding="utf-8")

    def find(self, alert: str) -> AlertDelivery | None:
        """Return where events of an alert go; None if it was not added here, or is damaged."""
        path = self._path(alert)
        with suppress(OSError, ValidationError):
            if path.stat().st_size <= MAX_BYTES:
                return AlertDelivery.model_validate_json(path.read_bytes())
        return None

    def alerts(self) -> list[str]:
        """Return the ids of the alerts that are delivered from here."""
        with suppress(OSError):
            names = (path.stem for path in self._folder.iterdir())
            return sorted(name for name in names if name.isalnum())
        return []

    def remove(self, alert: str) -> None:
        """Remove where events of an alert go."""
        self._path(alert).unlink(missing_ok=True)

    def remove_unused(self) -> None:
        """Remove what is of alerts that are no more, except for what was just written.

        That may be of an alert which is being added.
        """
        known = self.alerts()
        if not known:
            return
        with self._store.begin() as session:
            current = {alert.id for alert in list_alerts(session)}
        for alert in set(known) - current:
            with suppress(OSError):
                if time.time() - self._path(alert).stat().st_mtime > NEW_S:
                    self.remove(alert)

    def _path(self, alert: str) -> Path:
        return self._folder / f"{alert}.json"
