"""What the routers work with, opened once for all requests."""

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

QUESTIONS = 4
"""Questions searched at a time, where nothing else is said."""
MOST_QUESTIONS = 12
"""More would wait for connections of the store."""
SEARCHES = 8


@dataclass(frozen=True)
class ApiState(AgentPool):
    """The store and the machines; ``folders`` are those from which videos may be added."""

    folders: tuple[Path, ...] = ()
    questions: QuestionSlots = field(default_factory=lambda: QuestionSlots(QUESTIONS))
    searches: QuestionSlots = field(default_factory=lambda: QuestionSlots(SEARCHES))

    def named(self, profile: str | None) -> str:
        """The profile that a request names, else the configured one; never a file.

        Raises:
            Refused: there is none of that name.
        """
        known = profile_names(self.store.home.config)
        if profile is None or profile in known:
            return profile or self.profile
        detail = f"no profile is called {profile!r}"
        told = f"leave `profile` out, or name one of: {', '.join(known)}"
        raise RequestRefused(HTTPStatus.NOT_FOUND, "not-found", detail, told)


def _desk(request: Request) -> ApiState:
    found: ApiState = request.app.state.desk
    return found


Desk = Annotated[ApiState, Depends(_desk)]
