"""Application state: opened once, shared by all requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request
from fastapi.routing import APIRoute

from api.auth import USER_KEY
from api.limits import QuestionSlots
from api.problems import RequestRefused
from domain.errors import AccessDenied
from flows.agent_pool import AgentPool
from library.registry import ACTS
from models.profile import profile_names
from store.database import MAY_ONLY_LOOK

DEFAULT_QUESTIONS = 4
"""Default number of concurrent questions."""
MAX_SEARCHES = 8
MAX_ESTIMATES = 1
"""Each perceives three clips, with all models of its profile."""

OPEN_TO_VIEWERS = frozenset(
    {
        ("POST", "/questions"),
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
        ("GET", "/media/keyframes/{video}/{frame}"),
        ("GET", "/media/frames/{video}/{frame}"),
    }
)
"""Requests of keys that may only look and ask; all others change the library, or show all of it."""

OPEN_ACTS = {tuple(act.route.split(" ")) for act in ACTS if act.viewers}
"""The same of those that are made from the registry."""


@dataclass(frozen=True)
class ApiState(AgentPool):
    """The store and the agents by profile; ``folders`` are those that videos may be added from."""

    folders: tuple[Path, ...] = ()
    questions: QuestionSlots = field(default_factory=lambda: QuestionSlots(DEFAULT_QUESTIONS))
    searches: QuestionSlots = field(default_factory=lambda: QuestionSlots(MAX_SEARCHES))
    estimates: QuestionSlots = field(default_factory=lambda: QuestionSlots(MAX_ESTIMATES))

    def profile_name(self, profile: str | None) -> str:
        """Return the profile that a request names, else the configured one; never a path."""
        known = profile_names(self.store.home.config)
        if profile is None or profile in known:
            return profile or self.profile
        detail = f"no profile is called {profile!r}"
        hint = f"leave `profile` out, or name one of: {', '.join(known)}"
        raise RequestRefused(HTTPStatus.NOT_FOUND, "not-found", detail, hint)


def _state(request: Request) -> ApiState:
    """Return the state with what the client's key may see; raise if it may not do the act."""
    whole: ApiState = request.app.state.api_state
    state = whole.for_user(request.scope[USER_KEY])
    route: APIRoute = request.scope["route"]
    act = (request.method, route.path)
    if state is not whole and act not in OPEN_TO_VIEWERS | OPEN_ACTS:
        raise AccessDenied(MAY_ONLY_LOOK)
    return state


State = Annotated[ApiState, Depends(_state)]
