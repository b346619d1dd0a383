"""The outline of a video: its chapters with their times."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from api.app_state import State
from api.params import AsOf, as_of_ms
from api.routes.videos import Name
from views.outline import DEEPEST, Outline, load_outline

router = APIRouter(tags=["videos"])
Depth = Annotated[
    int,
    Query(
        ge=1,
        le=DEEPEST,
        description="Levels of chapters: 1 super events, 2 also macro events, 3 also what happens.",
    ),
]


@router.get("/videos/{name}/outline", summary="Its chapters")
def outline(state: State, name: Name, depth: Depth = 2, as_of: AsOf = None) -> Outline:
    """The chapters of a video, of the memory that `homer outline VIDEO --build` makes."""
    return load_outline(state.store, name, depth, as_of_ms(as_of))
