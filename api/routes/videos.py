"""The people of a video."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel

from api.app_state import ApiState, State
from api.params import DEFAULT_LIMIT, AsOf, Limit, Offset, Page, as_of_ms, next_offset
from domain.media import Video
from domain.people import tags_in_words
from views.library import resolve_video
from views.video_view import load_people_page

router = APIRouter(tags=["videos"])
Name = Annotated[
    str, Path(max_length=400, description="The video's id, an unambiguous beginning, or its title.")
]


class PersonTold(BaseModel):
    """A person of a video: known names, and tags of faces and voices."""

    number: int
    label: str
    names: list[str]
    tags: list[str]


class People(Page):
    """A page of people, by number."""

    people: list[PersonTold]


@router.get("/videos/{name}/people", summary="Its people")
def people(
    state: State, name: Name, offset: Offset = 0, limit: Limit = DEFAULT_LIMIT, as_of: AsOf = None
) -> People:
    """The people of the video, with all known names."""
    page = load_people_page(
        state.store, _find_video(state, name).id, offset, limit, as_of_ms(as_of)
    )
    shown = [
        PersonTold(
            number=person.number,
            label=tags_in_words(person.label),
            names=[name_.name for name_ in person.names],
            tags=list(person.tags),
        )
        for person in page.people
    ]
    next_page = next_offset(offset, len(shown), page.total)
    return People(total=page.total, offset=offset, next=next_page, people=shown)


def _find_video(state: ApiState, name: str) -> Video:
    with state.store.begin() as session:
        return resolve_video(session, name)
