"""Adding and removing alerts, with their delivery on this machine, and trying them out."""

from __future__ import annotations

import shlex
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError

from domain.alerts import (
    ALERT_NAME,
    MAX_QUESTION,
    Alert,
    AlertDelivery,
    AlertEvent,
    AlertKind,
    DeliveryState,
)
from domain.base import first_problem
from domain.errors import InputError
from domain.media import ClipState
from domain.texts import make_storable
from flows.alerts.deliveries import Deliveries
from flows.alerts.delivery import Deliverer
from flows.alerts.judging import AlertJudge
from flows.alerts.webhook import NotDelivered, check_host
from flows.workspace import Workspace
from store.database import Store
from store.queries.alerts import Match, add_alert, find_alert, remove_alert
from store.queries.clips import clips_of
from store.queries.videos import find_video, list_videos

MAX_SECRET = 1000


def make_delivery(
    webhook: str | None, command: str | None, secret_file: Path | None
) -> AlertDelivery | None:
    """Return where events go; None if neither a webhook nor a command is given.

    Args:
        webhook: an http or https address.
        command: a program with its arguments, split as a shell would, but run without one.
        secret_file: a file with the secret that signs webhooks.

    Raises:
        InputError: both are given, one is invalid, or the file cannot be read.
    """
    if webhook is None and command is None:
        if secret_file is not None:
            raise InputError("--secret-file is for --webhook")
        return None
    try:
        secret = None if secret_file is None else _read_secret(secret_file)
        return AlertDelivery(webhook=webhook, command=_arguments(command), secret=secret)
    except ValidationError as error:
        raise InputError(first_problem(error)) from error


def _read_secret(path: Path) -> str:
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise InputError(f"the secret cannot be read from {path}") from error
    if not 0 < len(secret) <= MAX_SECRET:
        raise InputError(f"{path} has no secret of 1 to {MAX_SECRET} characters")
    return secret


def _arguments(command: str | None) -> tuple[str, ...]:
    if command is None:
        return ()
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--command: {error}") from error
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise InputError(f"--command: there is no program {words[0] if words else ''!r}")
    return (str(Path(program).absolute()), *words[1:])


@dataclass(frozen=True)
class AlertDraft:
    """An alert as it is asked for; None: as the settings say."""

    name: str
    kind: AlertKind
    question: str = ""
    video: str | None = None
    threshold: float | None = None
    debounce_s: float | None = None


def add(workspace: Workspace, draft: AlertDraft, delivery: AlertDelivery | None) -> Alert:
    """Add an alert; it judges clips that are remembered from now on.

    Raises:
        InputError: its name or question cannot be used, there is one of that name, or the webhook
            leads to a private host that the settings do not name.
        NotFound: there is no such video.
    """
    settings = workspace.settings.alerts
    if not ALERT_NAME.fullmatch(draft.name):
        raise InputError(f"{draft.name!r} is no name of an alert: small letters, digits, - and _")
    if draft.kind is not AlertKind.UNKNOWN_FACE and (not draft.question.strip()):
        raise InputError("say what to wait for, such as 'someone carries a ladder'")
    if len(draft.question) > MAX_QUESTION:
        raise InputError(f"what to wait for has at most {MAX_QUESTION} characters")
    if draft.threshold is not None and (not 0 < draft.threshold <= 1):
        raise InputError("--threshold is above 0, and at most 1")
    if draft.debounce_s is not None and (not 0 <= draft.debounce_s <= 10**7):
        raise InputError("--debounce is a number of seconds")
    if delivery is not None and delivery.webhook is not None:
        # Refuse a private host at once; a host that is not known now may be later.
        parts = urlsplit(delivery.webhook)
        try:
            check_host(parts.hostname or "", parts.port or 443, settings.private_hosts)
        except NotDelivered as error:
            if not isinstance(error.__cause__, OSError | UnicodeError):
                raise InputError(str(error)) from error
    debounce_s = settings.debounce_s if draft.debounce_s is None else draft.debounce_s
    deliveries = Deliveries(workspace.store)
    with workspace.store.begin() as session:
        alert = Alert(
            id=uuid.uuid4().hex,
            name=draft.name,
            kind=draft.kind,
            question=make_storable(draft.question.strip()),
            video=None if draft.video is None else find_video(session, draft.video).id,
            threshold=draft.threshold or settings.threshold,
            debounce_ms=round(1000 * debounce_s),
            delivery=None if delivery is None else delivery.kind,
        )
        add_alert(session, alert)
        if delivery is not None:
            deliveries.put(alert.id, delivery)
    deliveries.remove_unused()
    return alert


def remove(store: Store, name: str) -> None:
    """Remove an alert with its events and its delivery.

    Raises:
        NotFound: there is none of that name.
    """
    with store.begin() as session:
        alert = find_alert(session, name)
        remove_alert(session, alert.id)
    Deliveries(store).remove(alert.id)


def closest_clips(workspace: Workspace, name: str, most: int) -> Iterator[tuple[str, int, Match]]:
    """Yield video, clip and match of the latest clips of each video of an alert.

    Nothing is recorded or delivered.

    Args:
        most: clips of each video.

    Raises:
        NotFound: there is none of that name.
    """
    judge = AlertJudge(workspace)
    with workspace.store.begin(snapshot=True) as session:
        alert = find_alert(session, name)
        videos = [alert.video] if alert.video else [video.id for video in list_videos(session)]
        clips = {
            video: [c.index for c in clips_of(session, video) if c.state is ClipState.DONE][-most:]
            for video in videos
        }
    for video, numbers in clips.items():
        for clip in numbers:
            match = judge.best(alert, video, clip)
            if match is not None:
                yield video, clip, match


def send_example(workspace: Workspace, name: str, video: str, clip: int, match: Match) -> None:
    """Send a match once, marked as a test; it is not recorded.

    Raises:
        InputError: the alert has no delivery on this machine, or it was not accepted.
    """
    with workspace.store.begin() as session:
        alert = find_alert(session, name)
    deliverer = Deliverer(workspace.store, workspace.settings.alerts)
    delivery = deliverer.deliveries.find(alert.id)
    if delivery is None:
        raise InputError(f"{name} is not delivered from this machine")
    event = AlertEvent(
        id=f"test-{uuid.uuid4().hex}",
        alert=alert,
        video=video,
        clip=clip,
        span=match.span,
        score=match.score,
        memory=match.memory,
        identity=match.identity,
        segment=match.segment,
        keyframe=match.keyframe,
        state=DeliveryState.WAITING,
        attempts=1,
        error=None,
        at=datetime.now(UTC),
    )
    try:
        deliverer.send(event, delivery, is_test=True)
    except NotDelivered as error:
        raise InputError(str(error)) from error
