"""The outline of a video: its chapters with their times."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from api.app_state import State
from api.params import AsOf, as_of_ms
from api.routes.videos import Name
from views.outline import DEEPEST, Chapter, load_outline

router = APIRouter(tags=["videos"])
Depth = Annotated[
    int,
    Query(
        ge=1,
        le=DEEPEST,
        description="Levels of chapters: 1 super events, 2 also macro events, 3 also what happens.",
    ),
]


class ChapterTold(BaseModel):
    """A chapter with the chapters that it is made of."""

    start_s: float
    end_s: float
    title: str
    text: str
    parts: list[ChapterTold]


class OutlineTold(BaseModel):
    """What a video is about, and its chapters in order of time."""

    video: str
    title: str
    text: str
    depth: int = Field(description="levels of chapters")
    chapters: list[ChapterTold]


@router.get("/videos/{name}/outline", summary="Its chapters")
def outline(state: State, name: Name, depth: Depth = 2, as_of: AsOf = None) -> OutlineTold:
    """The chapters of a video, of the memory that `homer outline VIDEO --build` makes."""
    found = load_outline(state.store, name, depth, as_of_ms(as_of))
    return OutlineTold(
        video=found.video,
        title=found.title,
        text=found.text,
        depth=found.depth,
        chapters=list(map(_told, found.chapters)),
    )


def _told(chapter: Chapter) -> ChapterTold:
    return ChapterTold(
        start_s=chapter.span.start_ms / 1000,
        end_s=chapter.span.end_ms / 1000,
        title=chapter.title,
        text=chapter.text,
        parts=list(map(_told, chapter.parts)),
    )
