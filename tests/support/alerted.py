"""A workspace whose models are words, alerts in it, and what they found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from domain.alerts import AlertKind
from domain.media import Percept
from flows.alerts.adding import AlertDraft, add
from flows.alerts.judging import AlertJudge
from flows.alerts.worker import judge_waiting
from flows.workspace import Workspace
from memory.write_clip import remember
from models.profile import load_profile
from store.database import Store
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    WordVectors,
    local_writers,
    percept,
    said,
)
from views.alerts import ShownEvent, page_of_events

LADDER = "someone carries a ladder"


def workspace_of(store: Store, text_model: Any = None, **alerts: Any) -> Workspace:
    toolbox: Any = SimpleNamespace(text=text_model or WordVectors(), reranker=None)
    profile = load_profile("local")
    settings = profile.settings
    changed = settings.alerts.model_copy(update=alerts)
    settings = settings.model_copy(update={"alerts": changed})
    return Workspace(store.home, store, profile.model_copy(update={"settings": settings}), toolbox)


def watch(store: Store, *percepts: Percept) -> None:
    for one in percepts:
        remember(store, VIDEO, Perceived(one), local_writers(), Tools(), SETTINGS)


def clip_with(index: int, words: str) -> Percept:
    return percept(index, utterances=(said(30 * index + 2, words),))


def ladder(index: int) -> Percept:
    return clip_with(index, "Look, a man carries a ladder.")


def judged(workspace: Workspace) -> int:
    return judge_waiting(workspace, AlertJudge(workspace)).events


def events(workspace: Workspace, **which: Any) -> list[ShownEvent]:
    return page_of_events(workspace.store, 0, 100, **which)[0][::-1]


def text_alert(workspace: Workspace, name: str = "ladder", **more: Any) -> Any:
    delivery = more.pop("delivery", None)
    draft = AlertDraft(name, AlertKind.TEXT, more.pop("question", LADDER), **more)
    return add(workspace, draft, delivery)
