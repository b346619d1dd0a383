"""Alerts and their events as they are shown and delivered: with names as they are known now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.orm import Session

from domain.alerts import Alert, AlertEvent
from domain.errors import NotFound
from domain.memories import MemoryView, Scope
from domain.people import tags_in_words
from people.corrected import characters_at
from retrieval.citations import cite
from store.database import Store
from store.queries.alerts import count_events, events_page, find_alert, list_alerts
from store.queries.clips import memory_view
from store.queries.streams import find_stream
from store.queries.videos import find_video, known_video
from views.translation import translate


@dataclass(frozen=True)
class ShownAlert:
    """An alert, the title of its video, and how many events it has."""

    alert: Alert
    title: str | None
    events: int


@dataclass(frozen=True)
class ShownEvent:
    """An event, the title of its video, what shows it, and for a stream the time of day."""

    event: AlertEvent
    title: str
    text: str
    ref: str | None
    began: datetime | None

    def body(self) -> dict[str, Any]:
        """Return the event as it is delivered, without its state."""
        event, alert = self.event, self.event.alert
        return {
            "id": event.id,
            "alert": alert.name,
            "kind": str(alert.kind),
            "question": alert.question,
            "video": {"id": event.video, "title": self.title},
            "clip": event.clip,
            "start_s": event.span.start_ms / 1000,
            "end_s": event.span.end_ms / 1000,
            "at": None if self.began is None else self.began.isoformat(),
            "score": round(event.score, 3),
            "text": self.text,
            "ref": self.ref,
        }


def shown_alerts(store: Store) -> list[ShownAlert]:
    """Return the alerts by name."""
    with store.begin(snapshot=True) as session:
        counts = count_events(session)
        return [
            ShownAlert(alert, _title(session, alert.video), counts.get(alert.id, 0))
            for alert in list_alerts(session)
        ]


def _title(session: Session, video: str | None) -> str | None:
    known = None if video is None else known_video(session, video)
    return None if known is None else known.title


def page_of_events(
    store: Store,
    offset: int,
    limit: int,
    alert: str | None = None,
    video: str | None = None,
    as_of_ms: int | None = None,
) -> tuple[list[ShownEvent], int]:
    """Return a page of events, the latest first, and how many there are.

    Args:
        offset: Events to skip.
        limit: Events at most.
        alert: The name of the only alert.
        video: Id, unambiguous beginning of one, or title of the only video.
        as_of_ms: Only events of clips that were seen by then; needs a video.

    Raises:
        NotFound: there is no such alert or video.
        Ambiguous: several videos go by that name.
    """
    with store.begin(snapshot=True) as session:
        of_alert = None if alert is None else find_alert(session, alert).id
        of_video = None if video is None else find_video(session, video).id
        last = None
        if of_video is not None and as_of_ms is not None:
            last = memory_view(session, [of_video], as_of_ms).scopes[0].last_clip
        events, total = events_page(session, offset, limit, of_alert, of_video, last)
        return [_shown(session, event) for event in events], total


def shown_event(store: Store, event: AlertEvent) -> ShownEvent:
    """Return an event as it is shown now.

    Raises:
        NotFound: its video was deleted in the meantime.
    """
    with store.begin(snapshot=True) as session:
        return _shown(session, event)


def _shown(session: Session, event: AlertEvent) -> ShownEvent:
    video = known_video(session, event.video)
    if video is None:
        raise NotFound(
            translate("the video of the event {number} was deleted").format(number=event.id)
        )
    stream = find_stream(session, event.video)
    began = None
    if stream is not None:
        at = timedelta(milliseconds=stream.began_ms + event.span.start_ms)
        began = datetime.fromtimestamp(0, UTC) + at
    # What shows an event as it is cited; None for a face, which cannot be cited.
    ids = {"m": event.memory, "s": event.segment, "k": event.keyframe}
    ref = next((f"{kind}{number}" for kind, number in ids.items() if number is not None), None)
    return ShownEvent(event, video.title, _text(session, event, ref), ref, began)


def _text(session: Session, event: AlertEvent, ref: str | None) -> str:
    """Return what shows an event, or whose face was seen, with names as known by then."""
    if ref is not None:
        view = MemoryView(scopes=(Scope(video=event.video, last_clip=event.clip),))
        citations = cite(session, view, [ref]).citations
        return tags_in_words(citations[0].text) if citations else ""
    rows = characters_at(session, event.video, event.clip)
    person = next((row for row in rows if event.identity in row.members), None)
    if person is None:
        return translate("an unknown face was seen")
    return translate("{name} was seen").format(name=tags_in_words(person.character.label))
