"""Application state: opened once, shared by all requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from api.concurrency import QuestionSlots
from api.problems import RequestRefused
from graphs.agent_pool import AgentPool
from models.profile import profile_names

DEFAULT_QUESTIONS = 4
"""Default number of concurrent questions."""
MAX_SEARCHES = 8
MAX_ESTIMATES = 1
"""Each perceives three clips, with all models of its profile."""


@dataclass(frozen=True)
class ApiState(AgentPool):
    """The store and the agents by profile; ``folders`` are those that videos may be added from."""

    folders: tuple[Path, ...] = ()
    questions: QuestionSlots = field(default_factory=lambda: QuestionSlots(DEFAULT_QUESTIONS))
    searches: QuestionSlots = field(default_factory=lambda: QuestionSlots(MAX_SEARCHES))

    estimates: QuestionSlots = field(default_factory=lambda: QuestionSlots(MAX_ESTIMATES))

    def profile_name(self, profile: str | None) -> str:
        """Return the profile that a request names, else the configured one; never a path.

        Raises:
        RequestRefused: there is no profile of that name.
        """
        known = profile_names(self.store.home.config)
        if profile is None or profile in known:
            return profile or self.profile
        detail = f"no profile is called {profile!r}"
        hint = f"leave `profile` out, or name one of: {', '.join(known)}"
        raise RequestRefused(HTTPStatus.NOT_FOUND, "not-found", detail, hint)


def _state(request: Request) -> ApiState:
    state: ApiState = request.app.state.api_state
    return state


State = Annotated[ApiState, Depends(_state)]
