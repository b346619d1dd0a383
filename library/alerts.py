"""Alerts: standing questions that are judged on every clip once it is remembered."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from domain.alerts import ALERT_NAME, MAX_QUESTION, Alert, AlertKind, Delivery, Hit
from domain.base import first_problem
from domain.errors import InputError, NotDelivered
from domain.media import ClipState
from domain.words import make_storable
from flows.alert_delivery import (
    check_webhook,
    deliveries,
    judge_and_deliver,
    put_delivery,
    remove_delivery,
    send,
    shown,
)
from flows.alert_judging import AlertJudge
from flows.executors import direct_executor
from flows.workspace import Workspace
from library.params import DEFAULT_LIMIT, AsOf, Limit, Offset, OnCommandLine, OnlyVideo, Page, page
from models.text_endpoint import recorded_search
from store.database import Store
from store.progress import SILENT, Meter
from store.queries import alerts as queries
from store.queries.clips import clips_of, memory_view
from store.queries.videos import find_video, video_titles

MAX_SECRET = 1000

Name = Annotated[str, Field(max_length=40, description="The alert's name.")]
Here = OnCommandLine(metavar="VALUE", only=True)


def add_alert(
    workspace: Workspace,
    name: Name,
    question: Annotated[
        str,
        Field(description="What is to be said, read, seen or heard."),
        OnCommandLine(metavar="WHAT", argument=True),
    ] = "",
    video: OnlyVideo = None,
    person: Annotated[
        str | None, Field(description="Wait for the face of a person, by name or tag.")
    ] = None,
    unknown_face: Annotated[bool, Field(description="Wait for a face without a name.")] = False,
    threshold: Annotated[
        float | None,
        Field(gt=0, le=1, description="Closeness from which a clip counts. Default: 0.7."),
        OnCommandLine(metavar="0..1"),
    ] = None,
    debounce: Annotated[
        float | None,
        Field(ge=0, le=10**7, description="No second hit within so long. Default: 60."),
        OnCommandLine(metavar="SECONDS"),
    ] = None,
    webhook: Annotated[
        str | None,
        Field(description="Send each hit to this address, as JSON."),
        OnCommandLine(metavar="URL", only=True),
    ] = None,
    command: Annotated[
        str | None,
        Field(description="Run this for each hit, which is JSON on its standard input. No shell."),
        OnCommandLine(metavar="COMMAND", only=True),
    ] = None,
    secret_file: Annotated[
        Path | None,
        Field(description="A file with the secret that signs webhooks."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
) -> Alert:
    """Add an alert: it judges the clips that are remembered from now on.

    Examples:
      homer alert add ladder "someone carries a ladder" --video entrance
      homer alert add anna --person Anna --webhook https://example.org/hook
      homer alert add stranger --unknown-face --debounce 600

    Raises:
        InputError: its name or question cannot be used, there is one of that name, or the webhook
            leads to a private host that the settings do not name.
        NotFound: there is no such video.
    """
    settings = workspace.settings.alerts
    if not ALERT_NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name of an alert: small letters, digits, - and _")
    if bool(question.strip()) + (person is not None) + unknown_face != 1:
        raise InputError("name one thing to wait for: WHAT, --person or --unknown-face")
    kind = AlertKind.TEXT if person is None else AlertKind.PERSON
    wanted = make_storable((question if person is None else person).strip())
    if len(wanted) > MAX_QUESTION:
        raise InputError(f"what to wait for has at most {MAX_QUESTION} characters")
    delivery = _delivery(webhook, command, secret_file)
    if delivery is not None and delivery.webhook is not None:
        try:
            check_webhook(delivery.webhook, settings.private_hosts)
        except NotDelivered as error:
            raise InputError(str(error)) from error
    with workspace.store.begin() as session:
        found = None if video is None else find_video(session, video)
        alert = Alert(
            name=name,
            kind=AlertKind.UNKNOWN_FACE if unknown_face else kind,
            question=wanted,
            video=None if found is None else found.id,
            title=None if found is None else found.title,
            threshold=threshold or settings.threshold,
            debounce_ms=round(1000 * (settings.debounce_s if debounce is None else debounce)),
            delivery=None if delivery is None else delivery.kind,
            place=None if delivery is None else delivery.shown,
        )
        queries.add_alert(session, alert)
    if delivery is not None:
        # A file of this machine: addresses and secrets are not in the database.
        put_delivery(workspace.store, alert.id, delivery)
    return alert


def _delivery(
    webhook: str | None, command: str | None, secret_file: Path | None
) -> Delivery | None:
    """Return where hits go; None if neither a webhook nor a command is given."""
    if webhook is None and command is None:
        if secret_file is not None:
            raise InputError("--secret-file is for --webhook")
        return None
    words, secret = list[str](), None
    if secret_file is not None:
        try:
            secret = secret_file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise InputError(f"the secret cannot be read from {secret_file}") from error
        if not 0 < len(secret) <= MAX_SECRET:
            raise InputError(f"{secret_file} has no secret of 1 to {MAX_SECRET} characters")
    if command is not None:
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise InputError(f"--command: {error}") from error
        program = shutil.which(words[0]) if words else None
        if program is None:
            raise InputError(f"--command: there is no program {words[0] if words else ''!r}")
        # Hits are delivered by other processes too, which may find another program of that name.
        words[0] = str(Path(program).absolute())
    try:
        return Delivery(webhook=webhook, command=tuple(words), secret=secret)
    except ValidationError as error:
        raise InputError(first_problem(error)) from error


def alerts(store: Store) -> list[Alert]:
    """List the alerts, where they are delivered from here, and how many hits they have.

    Examples:
      homer alert list
      homer alert list --json
    """
    with store.begin(snapshot=True) as session:
        found = queries.list_alerts(session)
    # Where hits go is known to the machine that delivers them only.
    places = deliveries(store) if any(alert.delivery for alert in found) else {}
    return [
        alert.model_copy(update={"place": places[alert.id].shown}) if alert.id in places else alert
        for alert in found
    ]


def remove_alert(store: Store, name: Name) -> str:
    """Remove an alert with its hits.

    Examples:
      homer alert remove ladder

    Raises:
        NotFound: there is none of that name.
    """
    with store.begin() as session:
        alert = queries.find_alert(session, name)
        queries.remove_alert(session, alert.id)
    remove_delivery(store, alert.id)
    return f"{name} was removed"


def alert_hits(
    store: Store,
    alert: Annotated[
        str | None,
        Field(max_length=40, description="Only hits of this alert."),
        OnCommandLine(metavar="NAME", argument=True),
    ] = None,
    video: OnlyVideo = None,
    as_of: AsOf = None,
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[Hit]:
    """List the clips that answered an alert, the latest first.

    Examples:
      homer alert hits
      homer alert hits ladder --video entrance --json

    Raises:
        InputError: a time is given without a video.
        NotFound: there is no such alert or video.
    """
    if as_of is not None and video is None:
        raise InputError("a time is one of a video: name the video, too")
    with store.begin(snapshot=True) as session:
        if alert is not None:
            queries.find_alert(session, alert)
        of_video = None if video is None else find_video(session, video).id
        last = None
        if of_video is not None and as_of is not None:
            last = memory_view(session, [of_video], as_of).scopes[0].last_clip
        found, total = queries.hits_page(session, offset, limit, alert, of_video, last)
        return page([shown(session, hit) for hit in found], total, offset)


def try_alert(
    workspace: Workspace,
    name: Name,
    last: Annotated[
        int,
        Field(ge=1, description="Judge the last N clips of each video."),
        OnCommandLine(metavar="N"),
    ] = 20,
    send_one: Annotated[
        bool,
        Field(description="Send the closest clip once, marked as a test."),
        OnCommandLine("--send", only=True),
    ] = False,
    progress: Meter = SILENT,
) -> list[Hit]:
    """Judge clips that are in memory already, closest first. Nothing is recorded.

    Examples:
      homer alert test ladder
      homer alert test anna --last 100 --send

    Raises:
        NotFound: there is no such alert.
        InputError: it is to be sent, and is not delivered from this machine.
        NotDelivered: it was not accepted.
    """
    judge = AlertJudge(workspace)
    with workspace.store.begin(snapshot=True) as session:
        alert = queries.find_alert(session, name)
        titles = video_titles(session)
        clips = {
            video: [c.index for c in clips_of(session, video) if c.state is ClipState.DONE][-last:]
            for video in ([alert.video] if alert.video else titles)
        }
    with recorded_search(workspace.store) as cost:
        found = [
            hit.model_copy(update={"title": titles[video]})
            for video, numbers in clips.items()
            for clip in numbers
            if (hit := judge.best(alert, video, clip))
        ]
    if cost.usage.requests:
        progress.say(f"it took {cost.usage} of the embeddings endpoint")
    with workspace.store.begin(snapshot=True) as session:
        told = [shown(session, hit) for hit in sorted(found, key=lambda hit: -hit.score)]
    if send_one:
        delivery = deliveries(workspace.store).get(alert.id)
        if delivery is None:
            raise InputError(f"{name} is not delivered from this machine")
        for hit in told[:1]:
            # Under an id of its own: receivers know a hit that comes again by its id.
            test = hit.model_copy(update={"id": f"test-{hit.id}"})
            send(test, delivery, workspace.settings.alerts, is_test=True)
    return told


def deliver_alerts(workspace: Workspace) -> str:
    """Judge the clips and deliver the hits that wait, as an ingestion does beside its work.

    Examples:
      homer alert deliver
    """
    with direct_executor() as executor:
        return judge_and_deliver(workspace, executor)
