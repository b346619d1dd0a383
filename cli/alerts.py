"""``homer alert``: standing questions, judged on every clip."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.console import note, say, say_json, say_table
from cli.options import AsOf, Json, Profile, parse_as_of
from cli.search import show_cost
from domain.alerts import AlertKind
from domain.errors import InputError
from flows.alerts.adding import (
    AlertDraft,
    add,
    closest_clips,
    make_delivery,
    remove,
    send_example,
)
from flows.alerts.deliveries import Deliveries
from flows.alerts.worker import judge_and_deliver
from flows.workspace import open_workspace
from retrieval.search_cost import recorded_search
from store.database import open_store
from store.home import Home
from store.queries.alerts import Match
from views.alerts import ShownAlert, ShownEvent, page_of_events, shown_alerts
from views.words import format_span

GUIDE = """Ask standing questions, which are judged on every new clip.

A clip that answers one is recorded as an event, and sent to a webhook or a local command.

\b
Examples:
  homer alert add ladder "someone carries a ladder" --video entrance
  homer alert add anna --person Anna --webhook https://example.org/hook
  homer alert add stranger --unknown-face --command "notify-send 'An unknown face'"
  homer alert events
"""

Name = Annotated[str, typer.Argument(metavar="NAME", help="The alert's name.")]
OfVideo = Annotated[
    str | None,
    typer.Option(
        "--video", "-v", metavar="VIDEO", help="Only this video. Default: all, later ones too."
    ),
]


def add_alert(
    name: Name,
    question: Annotated[
        str, typer.Argument(metavar="[WHAT]", help="What is to be said, read, seen or heard.")
    ] = "",
    video: OfVideo = None,
    person: Annotated[
        str | None,
        typer.Option(metavar="PERSON", help="Wait for the face of a person, by name or tag."),
    ] = None,
    unknown_face: Annotated[
        bool, typer.Option("--unknown-face", help="Wait for a face without a name.")
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(metavar="0..1", help="Closeness from which a clip counts. Default: 0.7."),
    ] = None,
    debounce: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="No second event within so long. Default: 60."),
    ] = None,
    webhook: Annotated[
        str | None, typer.Option(metavar="URL", help="Send each event to this address, as JSON.")
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run this for each event, which is JSON on its standard input. No shell.",
        ),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with the secret that signs webhooks."),
    ] = None,
    profile: Profile = None,
) -> None:
    """Add an alert: it judges the clips that are remembered from now on.

    \b
    Examples:
      homer alert add ladder "someone carries a ladder" --video entrance
      homer alert add anna --person Anna --webhook https://example.org/hook
      homer alert add stranger --unknown-face --debounce 600
    """
    kind, wanted = _wanted(question, person, unknown_face)
    draft = AlertDraft(name, kind, wanted, video, threshold, debounce)
    delivery = make_delivery(webhook, command, secret_file)
    with open_workspace(profile) as workspace:
        alert = add(workspace, draft, delivery)
    say(f"{alert.name}: {alert.wants}")


def _wanted(question: str, person: str | None, unknown_face: bool) -> tuple[AlertKind, str]:
    if (bool(question) + (person is not None) + unknown_face) != 1:
        raise InputError("name one thing: WHAT, --person or --unknown-face")
    if unknown_face:
        return AlertKind.UNKNOWN_FACE, ""
    return (AlertKind.TEXT, question) if person is None else (AlertKind.PERSON, person)


def list_alerts(json: Json = False) -> None:
    """List the alerts, where they are delivered from here, and how many events they have.

    \b
    Examples:
      homer alert list
      homer alert list --json
    """
    with open_store(Home.default()) as store:
        alerts = shown_alerts(store)
        deliveries = Deliveries(store)
        places = {one.alert.id: _place(one, deliveries) for one in alerts}
    if json:
        return say_json([_as_json(one, places[one.alert.id]) for one in alerts])
    heads = ("alert", "waits for", "video", "threshold", "delivery", "events")
    rows = (
        (
            one.alert.name,
            one.alert.wants,
            one.title or "all",
            f"{one.alert.threshold:g}" if one.alert.kind is AlertKind.TEXT else "",
            places[one.alert.id],
            one.events,
        )
        for one in alerts
    )
    return say_table(heads, rows)


def _place(one: ShownAlert, deliveries: Deliveries) -> str:
    if one.alert.delivery is None:
        return ""
    found = deliveries.find(one.alert.id)
    return f"{one.alert.delivery} of another machine" if found is None else found.shown


def _as_json(one: ShownAlert, place: str) -> dict[str, object]:
    alert = one.alert.model_dump(mode="json", exclude={"id"})
    return alert | {"title": one.title, "delivery": place or None, "events": one.events}


def remove_alert(name: Name) -> None:
    """Remove an alert with its events.

    \b
    Example:
      homer alert remove ladder
    """
    with open_store(Home.default()) as store:
        remove(store, name)
    note(f"{name} was removed")


def events(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only events of this alert.")
    ] = None,
    video: OfVideo = None,
    as_of: AsOf = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Events at most.")] = 20,
    json: Json = False,
) -> None:
    """List events, the latest first.

    \b
    Examples:
      homer alert events
      homer alert events ladder --video entrance --json
    """
    as_of_ms = parse_as_of(as_of)
    if as_of_ms is not None and video is None:
        raise InputError("--as-of is a time of one video: name it with --video")
    with open_store(Home.default()) as store:
        found, total = page_of_events(store, 0, limit, name, video, as_of_ms)
    if json:
        return say_json([_event_as_json(one) for one in found])
    heads = ("recorded", "alert", "video", "time", "score", "delivery", "what")
    say_table(heads, map(_row, found))
    if total > len(found):
        note(f"{len(found)} of {total} events: --limit {total}")
    return None


def _row(one: ShownEvent) -> tuple[object, ...]:
    event = one.event
    return (
        f"{event.at.astimezone():%Y-%m-%d %H:%M:%S}",
        event.alert.name,
        one.title,
        format_span(event.span),
        f"{event.score:.2f}",
        f"{event.state}: {event.error}" if event.error else str(event.state),
        one.text,
    )


def _event_as_json(one: ShownEvent) -> dict[str, object]:
    event = one.event
    state = {"state": str(event.state), "attempts": event.attempts, "error": event.error}
    return one.body() | state | {"recorded": event.at.isoformat()}


def try_out(
    name: Name,
    last: Annotated[
        int, typer.Option(metavar="N", min=1, help="Judge the last N clips of each video.")
    ] = 20,
    send: Annotated[
        bool, typer.Option("--send", help="Send the closest clip once, marked as a test.")
    ] = False,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Judge clips that are in memory already, closest first. No event is recorded.

    \b
    Examples:
      homer alert test ladder
      homer alert test anna --last 100 --send
    """
    with open_workspace(profile) as workspace:
        with recorded_search(workspace.store) as cost:
            found = sorted(closest_clips(workspace, name, last), key=lambda one: -one[2].score)
        if send and found:
            send_example(workspace, name, *found[0])
    if json:
        return say_json(
            [{"video": v, "clip": c, "score": m.score, "at": str(m.span)} for v, c, m in found]
        )
    say_table(
        ("video", "time", "score", "counts"),
        ((v, format_span(m.span), f"{m.score:.2f}", _counts(m)) for v, _, m in found),
    )
    show_cost(cost.usage)
    if send:
        note(f"{name}: sent" if found else "there is no clip to send")
    return None


def _counts(match: Match) -> str:
    return "yes" if match.score >= match.alert.threshold else "no"


def deliver(profile: Profile = None) -> None:
    """Judge the clips and deliver the events that wait, as an ingestion does beside its work.

    \b
    Example:
      homer alert deliver
    """
    with open_workspace(profile) as workspace:
        report = judge_and_deliver(workspace)
    say(report)


def _list_by_default(context: typer.Context) -> None:
    """List the alerts for ``homer alert`` without a command."""
    if context.invoked_subcommand is None:
        list_alerts()


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
    group.callback()(_list_by_default)
    group.command("add", no_args_is_help=True)(add_alert)
    group.command("list")(list_alerts)
    group.command("remove", no_args_is_help=True)(remove_alert)
    group.command()(events)
    group.command("test", no_args_is_help=True)(try_out)
    group.command()(deliver)
    app.add_typer(group, name="alert", help=GUIDE)
