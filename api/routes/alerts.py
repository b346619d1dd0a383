"""Alerts and their events. They are added and removed on the command line only."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.app_state import State
from api.params import DEFAULT_LIMIT, AsOf, Limit, Offset, Page, as_of_ms, next_offset
from domain.alerts import AlertKind, DeliveryKind, DeliveryState
from domain.errors import InputError
from views.alerts import ShownAlert, ShownEvent, page_of_events, shown_alerts

router = APIRouter(tags=["alerts"])


class AlertTold(BaseModel):
    """A standing question, and how many events it has."""

    name: str
    kind: AlertKind
    question: str = Field(description="what it waits for, or the name of a person")
    video: str | None = Field(description="the only video it is about; null: all")
    threshold: float
    debounce_s: float
    delivery: DeliveryKind | None
    events: int


class Alerts(BaseModel):
    """All alerts, by name."""

    alerts: list[AlertTold]


class EventOfAlert(BaseModel):
    """A clip, or an event of several clips, that answered an alert."""

    id: str
    alert: str
    video: str
    title: str
    clip: int
    start_s: float
    end_s: float
    at: str | None = Field(description="time of day, for a stream")
    score: float
    text: str = Field(
        description="the line, keyframe or event that shows it, or whose face was seen"
    )
    ref: str | None
    recorded: str
    state: DeliveryState


class AlertEvents(Page):
    """A page of events, the latest first."""

    events: list[EventOfAlert]


@router.get("/alerts", summary="List the alerts")
def alerts(state: State) -> Alerts:
    """Standing questions, by name. `homer alert add` adds one on the server's machine."""
    return Alerts(alerts=[_alert(one) for one in shown_alerts(state.store)])


@router.get("/alerts/events", summary="List the events of alerts")
def events(
    state: State,
    alert: Annotated[str | None, Query(max_length=40, description="Only this alert.")] = None,
    video: Annotated[
        str | None, Query(max_length=400, description="Only this video: its id or title.")
    ] = None,
    as_of: AsOf = None,
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
) -> AlertEvents:
    """Clips that answered an alert, the latest first."""
    at_ms = as_of_ms(as_of)
    if at_ms is not None and video is None:
        raise InputError("as_of is a time of one video: name it with video")
    found, total = page_of_events(state.store, offset, limit, alert, video, at_ms)
    return AlertEvents(
        events=[_event(one) for one in found],
        total=total,
        offset=offset,
        next=next_offset(offset, len(found), total),
    )


def _alert(one: ShownAlert) -> AlertTold:
    alert = one.alert
    return AlertTold(
        name=alert.name,
        kind=alert.kind,
        question=alert.question,
        video=alert.video,
        threshold=alert.threshold,
        debounce_s=alert.debounce_ms / 1000,
        delivery=alert.delivery,
        events=one.events,
    )


def _event(one: ShownEvent) -> EventOfAlert:
    event = one.event
    return EventOfAlert(
        id=event.id,
        alert=event.alert.name,
        video=event.video,
        title=one.title,
        clip=event.clip,
        start_s=event.span.start_ms / 1000,
        end_s=event.span.end_ms / 1000,
        at=None if one.began is None else one.began.isoformat(),
        score=event.score,
        text=one.text,
        ref=one.ref,
        recorded=event.at.isoformat(),
        state=event.state,
    )
