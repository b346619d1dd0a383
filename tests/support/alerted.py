"""A workspace whose models are words, alerts in it, and what they found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from domain.alerts import Alert, Hit
from domain.media import Percept
from flows.alert_judging import AlertJudge
from flows.workspace import Workspace
from library import alerts
from models.profile import load_profile
from store.database import Store
from tests.support.memory import WordVectors, memorise, percept, said

LADDER = "someone carries a ladder"


def workspace_of(store: Store, text_model: Any = None, **changes: Any) -> Workspace:
    toolbox: Any = SimpleNamespace(text=text_model or WordVectors(), reranker=None)
    toolbox.of_library = lambda *_: toolbox
    profile = load_profile("local")
    settings = profile.settings
    settings = settings.model_copy(update={"alerts": settings.alerts.model_copy(update=changes)})
    return Workspace(store.home, store, profile.model_copy(update={"settings": settings}), toolbox)


def watch(store: Store, *percepts: Percept) -> None:
    memorise(store, *percepts)


def clip_with(index: int, words: str) -> Percept:
    return percept(index, utterances=(said(30 * index + 2, words),))


def ladder(index: int) -> Percept:
    return clip_with(index, "Look, a man carries a ladder.")


def judged(workspace: Workspace) -> int:
    return len(AlertJudge(workspace).judge_waiting()[0])


def hits(workspace: Workspace, **which: Any) -> list[Hit]:
    return [*alerts.alert_hits(workspace.store, limit=100, **which).items][::-1]


def text_alert(
    workspace: Workspace, name: str = "ladder", *, question: str = LADDER, **more: Any
) -> Alert:
    return alerts.add_alert(workspace, name, question, **more)
