"""Delivers hits of alerts to webhooks and commands. Delivery is at least once.

Where they go is a file in the data directory of the machine an alert was added on. It is not in
the database, so nobody who can write to it, and no back-up, starts a program here or learns an
address or a secret. Each database has a folder of its own, since databases may share a data
directory.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import logging
import os
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Timer
from urllib.parse import urlsplit

from pydantic import ValidationError
from pydantic_core import to_json
from sqlalchemy import text
from sqlalchemy.orm import Session

from domain.alerts import AlertSettings, Delivery, DeliveryState, Hit
from domain.errors import NotDelivered
from domain.memories import MemoryView, Scope
from domain.people import tags_in_words
from domain.time import in_seconds
from domain.words import counted, translate
from flows.alert_judging import AlertJudge
from flows.executors import Executor, Step
from flows.workspace import Workspace
from perception.allowed_hosts import AllowedHosts, HostForbidden
from retrieval.quotes_and_citations import cite
from store.database import Store
from store.files import atomic_file, make_private
from store.queries.alerts import count_hits, list_alerts, settle_hit, waiting_hits
from store.queries.blobs import own_library_id
from store.queries.characters import characters_at

MAX_BYTES = 64 * 1024
"""Of the file of a delivery."""
NEW_S = 600
AT_ONCE = 4
"""Alerts whose hits are delivered at a time."""
PAUSE_S = 60.0
"""Before an alert's delivery that failed, with all its retries, is begun again."""
END_S = 20.0
"""The longest that an ingestion waits at its end for deliveries."""
PREFIX = "whsec_"
"""Of a secret that is given in base64."""
PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"),
    *("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
)
"""What a command has of Homer's environment, which may hold passwords and keys."""

_LOG = logging.getLogger(f"homer.{__name__}")


# Where hits go


def _folder(store: Store) -> Path:
    with store.begin() as session:
        return store.home.alerts / own_library_id(session)


def put_delivery(store: Store, alert: str, delivery: Delivery) -> None:
    """Store where hits of an alert go, by its id, readable by this user only.

    Those of alerts that are no more are removed, except for what was just written, which may be of
    an alert that is being added.
    """
    folder = _folder(store)
    make_private(store.home.alerts)
    make_private(folder)
    with atomic_file(folder / f"{alert}.json") as part:
        part.write_text(delivery.model_dump_json(exclude_none=True), encoding="utf-8")
    with store.begin() as session:
        current = {one.id for one in list_alerts(session)}
    for path in folder.glob("*.json"):
        with suppress(OSError):
            if path.stem not in current and time.time() - path.stat().st_mtime > NEW_S:
                path.unlink()


def deliveries(store: Store) -> dict[str, Delivery]:
    """Return where hits go from this machine, by the id of the alert; a damaged file counts not."""
    found = dict[str, Delivery]()
    for path in sorted(_folder(store).glob("*.json")):
        with suppress(OSError, ValidationError):
            if path.stem.isalnum() and path.stat().st_size <= MAX_BYTES:
                found[path.stem] = Delivery.model_validate_json(path.read_bytes())
    return found


def remove_delivery(store: Store, alert: str) -> None:
    """Remove where hits of an alert go."""
    (_folder(store) / f"{alert}.json").unlink(missing_ok=True)


# Sending one hit


def shown(session: Session, hit: Hit) -> Hit:
    """Return a hit with what shows it, and with names as they are known by then."""
    ids = {"m": hit.memory, "s": hit.segment, "k": hit.keyframe}
    ref = next((f"{kind}{number}" for kind, number in ids.items() if number is not None), None)
    if ref is not None:
        view = MemoryView(scopes=(Scope(video=hit.video, last_clip=hit.clip),))
        citations = cite(session, view, [ref]).citations
        told = tags_in_words(citations[0].text) if citations else ""
    else:  # A face, which cannot be cited.
        rows = characters_at(session, hit.video, hit.clip)
        person = next((row.character for row in rows if hit.identity in row.members), None)
        name = translate("an unknown face") if person is None else tags_in_words(person.label)
        told = translate("{name} was seen").format(name=name)
    return hit.model_copy(update={"text": told, "ref": ref})


def send(hit: Hit, delivery: Delivery, settings: AlertSettings, *, is_test: bool = False) -> None:
    """Send a hit once, as JSON.

    Raises:
        NotDelivered: it was not accepted.
    """
    told = in_seconds(hit.model_dump(mode="json", exclude={"state", "error", "recorded"}))
    body = to_json(told | {"test": is_test})
    if delivery.webhook is None:
        # Run a command, without a shell, with a hit on its standard input; its output is not read.
        # When the time is over it is ended with all processes of its group.
        limit_s = settings.command_s
        try:
            process = subprocess.Popen(
                delivery.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise NotDelivered(f"the command cannot be run: {type(error).__name__}") from error
        with process:
            try:
                process.communicate(body, timeout=limit_s)
            except subprocess.TimeoutExpired as error:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise NotDelivered(f"the command took longer than {limit_s:g} s") from error
        if process.returncode:
            raise NotDelivered(f"the command ended with code {process.returncode}")
    else:
        hosts = check_webhook(delivery.webhook, settings.private_hosts)
        _post(delivery.webhook, hosts, hit.id, body, delivery.secret, settings.webhook_s)


def check_webhook(url: str, private_hosts: tuple[str, ...]) -> AllowedHosts:
    """Return the hosts that a webhook may lead to: public ones, and itself if it is named.

    Raises:
        NotDelivered: it leads to a private host that is not named.
    """
    host = urlsplit(url).hostname or ""
    is_named = host.casefold() in {name.casefold() for name in private_hosts}
    allowed = AllowedHosts(host if is_named else None)
    try:
        allowed.check(host)
    except HostForbidden as error:
        raise NotDelivered(
            "the webhook leads to a private network or to this machine: name its host in "
            "settings.alerts.private_hosts if that is wanted"
        ) from error
    return allowed


def _post(
    url: str, hosts: AllowedHosts, hit: str, body: bytes, secret: str | None, limit_s: float
) -> None:
    """Post a hit as Standard Webhooks (https://www.standardwebhooks.com) describes.

    The address is checked after the name is resolved, and connected to as it was checked, so a
    name server cannot change it in between. Redirects are not followed, and the answer's body is
    not read.

    Raises:
        NotDelivered: it was not accepted with a status of 200 to 299 within ``limit_s`` seconds.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    now = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Homer",
        "Connection": "close",
        "webhook-id": hit,
        "webhook-timestamp": now,
    }
    if secret is not None:
        key = secret.encode()
        with suppress(binascii.Error, ValueError):
            if secret.startswith(PREFIX):
                key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
        signed = b".".join((hit.encode(), now.encode(), body))
        digest = hmac.new(key, signed, hashlib.sha256).digest()
        headers["webhook-signature"] = f"v1,{base64.b64encode(digest).decode()}"
    deadline = time.monotonic() + limit_s
    connection = http.client.HTTPConnection(host, port)
    try:
        with hosts.connect((host, port), limit_s) as plain:
            # A time-out of the socket alone would begin anew with each byte of a slow server.
            timer = Timer(max(0.0, deadline - time.monotonic()), _shut_down, [plain])
            timer.daemon = True
            timer.start()
            try:
                connection.sock = plain
                if parts.scheme == "https":
                    # Of a duplicate: the plain one can still be shut down in a handshake.
                    context = ssl.create_default_context()
                    connection.sock = context.wrap_socket(plain.dup(), server_hostname=host)
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection.request("POST", path, body, headers)
                status = connection.getresponse().status
                if time.monotonic() >= deadline:
                    raise TimeoutError  # What was cut off there may look like a whole answer.
            finally:
                timer.cancel()
                connection.close()
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotDelivered(f"the webhook did not answer: {type(error).__name__}") from error
    if not 200 <= status < 300:
        raise NotDelivered(f"the webhook answered with status {status}")


def _shut_down(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)


# Delivering what waits


def deliver(workspace: Workspace, alert: str) -> int:
    """Deliver what waits of an alert, the oldest first; return how many hits were delivered.

    After a failure the later ones wait too. Another process that delivers the alert is left to
    it; one that is killed while it sends leaves the hit to be sent again, under the same id.

    Raises:
        NotDelivered: one was not accepted; a retry may go on.
        DatabaseError: the database is gone.
    """
    store, settings, delivered = workspace.store, workspace.settings.alerts, 0
    delivery = deliveries(store).get(alert)
    with store.begin() as claim:
        lock = text("SELECT pg_try_advisory_xact_lock(hashtext(:alert))")
        if delivery is None or not claim.scalar(lock, {"alert": alert}):
            return 0
        with store.begin(snapshot=True) as session:
            waiting = [shown(session, hit) for _, hit in waiting_hits(session, [alert])]
        for hit in waiting:
            try:
                send(hit, delivery, settings)
            except NotDelivered as error:
                age = datetime.now(UTC) - hit.recorded
                over = age > timedelta(seconds=settings.give_up_s)
                state = DeliveryState.FAILED if over else DeliveryState.WAITING
                with store.begin() as session:
                    settle_hit(session, hit.id, state, str(error))
                if not over:
                    raise
            else:
                with store.begin() as session:
                    settle_hit(session, hit.id, DeliveryState.DELIVERED, None)
                delivered += 1
    return delivered


DELIVER = Step(name="deliver", run_name="deliver {alert}", call=deliver)


class Deliveries:
    """Deliveries that run beside other work, at most one an alert."""

    def __init__(self, workspace: Workspace, executor: Executor) -> None:
        self._workspace, self._executor = workspace, executor
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="alerts")
        self._started = dict[str, tuple[Future[object], float]]()

    def start(self) -> None:
        """Start to deliver what waits of the alerts whose delivery is on this machine."""
        store = self._workspace.store
        with store.begin() as session:
            waiting = {alert for alert, _ in waiting_hits(session, deliveries(store))}
        for alert in waiting:
            future, at = self._started.get(alert, (None, 0.0))
            failed = future is not None and future.done() and future.exception() is not None
            if (
                future is None
                or (future.done() and not failed)
                or (failed and time.monotonic() - at >= PAUSE_S)
            ):
                run = partial(self._executor.run, DELIVER, workspace=self._workspace, alert=alert)
                started = self._threads.submit(copy_context().run, run)
                self._started[alert] = (started, time.monotonic())

    def finish(self, limit_s: float | None = None) -> None:
        """Wait for the deliveries; what is left then waits for the next ingestion or schedule."""
        wait([future for future, _ in self._started.values()], limit_s)
        self._threads.shutdown(wait=False, cancel_futures=True)


@contextmanager
def alerts_beside(workspace: Workspace, executor: Executor) -> Iterator[Callable[[], None]]:
    """Yield what judges the clips that wait; what answers is delivered beside the block.

    Nothing of alerts may disturb an ingestion: their errors are logged only, and it waits for
    deliveries at its end for ``END_S`` seconds at most.
    """
    judge, beside = AlertJudge(workspace), Deliveries(workspace, executor)

    def go_on() -> None:
        try:
            judge.judge_waiting()
            beside.start()
        except Exception as error:  # noqa: BLE001 - see above
            fields = {"error": type(error).__name__}
            _LOG.warning("alerts failed", extra={"homer": fields})

    left_s = 0.0  # After an error or Ctrl-C nothing is waited for.
    try:
        go_on()
        yield go_on
        go_on()
        left_s = END_S
    finally:
        beside.finish(left_s)


def judge_and_deliver(workspace: Workspace, executor: Executor) -> str:
    """Judge the clips and deliver the hits that wait; return in words what came of it.

    Raises:
        DatabaseError: the database is gone.
    """
    with workspace.store.begin() as session:
        before = count_hits(session, DeliveryState.DELIVERED)
    hits, not_judged = AlertJudge(workspace).judge_waiting()
    beside = Deliveries(workspace, executor)
    beside.start()
    beside.finish()
    with workspace.store.begin() as session:
        delivered = count_hits(session, DeliveryState.DELIVERED) - before
        waiting = count_hits(session, DeliveryState.WAITING)
    report = f"{counted(len(hits), 'hit')} recorded, {delivered} delivered"
    if waiting:
        report += f", {waiting} to be tried again"
    if not_judged:
        report += f"; the text model does not answer: {counted(not_judged, 'clip')} not judged"
    return report
