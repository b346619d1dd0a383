"""The people of the library: who is in several videos, who may be the same, and correcting it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, PositiveInt
from pydantic.config import JsonDict

from api.app_state import ApiState, State
from api.params import DEFAULT_LIMIT, Limit, Offset
from domain.moments import image_path
from domain.people import CharacterRef, Correction, tags_in_words
from people.across_videos import (
    characters_of_person,
    join,
    keep_apart,
    rename,
    split_off,
)
from people.corrections import undo
from people.forget import forget
from people.video_people import MAX_NAME
from views.persons_view import (
    CharacterCard,
    LastSeen,
    LibraryPerson,
    LikelyCards,
    likely_across_videos,
    load_library_people,
)

router = APIRouter(tags=["people"])

VideoName = Annotated[str, Field(max_length=400, description="Id or title of the video.")]
PersonName = Annotated[str, Field(max_length=200, description="Number, tag or name.")]
_PAIR: JsonDict = {"video": "talk", "person": "Ada", "other_video": "interview", "other": "5"}


class LastSeenTold(BaseModel):
    """Where somebody was last seen, or heard where no face is known; ``image`` is a path."""

    video: str
    title: str
    start_s: float
    end_s: float
    at: str = Field(description="time of day: of a file, when it was added")
    seen: bool
    image: str | None


class PersonInVideo(BaseModel):
    """A person as they are in one video."""

    video: str
    title: str
    number: int
    label: str


class LibraryPersonTold(BaseModel):
    """A person of the library, with the videos that they are in."""

    label: str
    videos: list[PersonInVideo]
    last_seen: LastSeenTold | None


class LibraryPeopleTold(BaseModel):
    """Some people: those of several videos, then others with a name, of the newest video first."""

    people: list[LibraryPersonTold]
    offset: int
    next: int | None = Field(description="pass it as `offset` for the next page")


class LikelyTold(BaseModel):
    """People of two videos who may be one person."""

    one: PersonInVideo
    other: PersonInVideo
    alike_in: str = Field(description="face or voice")
    cosine: float
    sure: bool = Field(description="far above the threshold of the model")


class LikelyPeopleTold(BaseModel):
    """Pairs, the most alike first."""

    pairs: list[LikelyTold]


class CorrectionTold(BaseModel):
    """A correction; its number is of the first video, in which it can be undone for all."""

    number: int
    told: str
    undone: bool


class PairOfPeople(BaseModel):
    """Two people of different videos."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_PAIR]})

    video: VideoName
    person: PersonName
    other_video: VideoName
    other: PersonName


class UndoneCorrection(BaseModel):
    """A correction to undo."""

    model_config = ConfigDict(extra="forbid")

    video: VideoName
    number: PositiveInt | None = Field(default=None, description="By default the latest one.")


class PersonOfVideo(BaseModel):
    """A person of a video."""

    model_config = ConfigDict(extra="forbid")

    video: VideoName
    person: PersonName


class ForgottenPerson(PersonOfVideo):
    """A person of a video, and what to do with those joined with them in other videos."""

    everywhere: bool = Field(default=False, description="Also where they are in other videos.")


class NewName(PersonOfVideo):
    """A person and their new name."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"video": "talk", "person": "3", "name": "Ada"}]}
    )

    name: str = Field(max_length=MAX_NAME, description='"" removes all their names.')


class ForgottenTold(BaseModel):
    """What was forgotten of a person in one video."""

    video: str
    number: int
    rewritten: int = Field(description="texts that named them")
    images: int = Field(description="deleted images that showed them")
    answers: int = Field(description="deleted answers about the video")


class AllForgotten(BaseModel):
    """What was forgotten, by video."""

    forgotten: list[ForgottenTold]


@router.get("/people", summary="The people of the library")
def library_people(
    state: State, offset: Offset = 0, limit: Limit = DEFAULT_LIMIT
) -> LibraryPeopleTold:
    """Who is in several videos, then others with a name, with where they were last seen."""
    found = load_library_people(state.store, offset, limit)
    people = [_person(person) for person in found.persons]
    following = offset + len(people) if found.more else None
    return LibraryPeopleTold(people=people, offset=offset, next=following)


@router.get("/people/likely", summary="Who may be the same person")
def likely_people(
    state: State,
    video: Annotated[str | None, Query(max_length=400, description="One is of this video.")] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> LikelyPeopleTold:
    """People of different videos who may be one person; without a video, of the newest ones."""
    pairs = likely_across_videos(state.store, video, limit)
    return LikelyPeopleTold(pairs=[_likely(pair) for pair in pairs])


@router.post("/people/join", summary="Say that two people are one")
def join_people(state: State, pair: PairOfPeople) -> CorrectionTold:
    """Join two people of different videos. Within a video only a missing name changes."""
    return _correction(join(state.store, pair.video, pair.person, pair.other_video, pair.other))


@router.post("/people/apart", summary="Say that two people are two")
def keep_people_apart(state: State, pair: PairOfPeople) -> CorrectionTold:
    """Keep two people of different videos apart. They are suggested no more."""
    names = (pair.video, pair.person, pair.other_video, pair.other)
    return _correction(keep_apart(state.store, *names))


@router.post("/people/split", summary="Say that somebody is another person")
def split_person(state: State, which: PersonOfVideo) -> CorrectionTold:
    """Split a person off those of other videos that they were joined with."""
    return _correction(split_off(state.store, which.video, which.person))


@router.post("/people/rename", summary="Name a person")
def rename_person(state: State, new: NewName) -> CorrectionTold:
    """Name a person, in all videos that they are joined across."""
    return _correction(rename(state.store, new.video, new.person, new.name))


@router.post("/people/forget", summary="Forget a person")
def forget_person(state: State, which: ForgottenPerson) -> AllForgotten:
    """Delete the face, voice, images and names of a person, and answers about the video.

    It cannot be undone over HTTP. With `everywhere` all videos that they are joined across; if
    that is interrupted, the same request goes on.
    """
    all_of_them = characters_of_person(state.store, which.video, which.person)
    chosen = all_of_them if which.everywhere else all_of_them[:1]
    # The named video is last: until then the request can be repeated.
    return AllForgotten(forgotten=[_forget(state, one) for one in reversed(chosen)])


def _forget(state: ApiState, one: CharacterRef) -> ForgottenTold:
    text = state.toolbox_of(one.video).text
    done = forget(state.store, one.video, str(one.number), text)
    counts = {"rewritten": done.rewritten, "images": done.images, "answers": done.answers}
    return ForgottenTold(video=one.video, number=one.number, **counts)


@router.post("/people/undo", summary="Undo a correction of people")
def undo_people(state: State, which: UndoneCorrection) -> CorrectionTold:
    """Undo a correction, in all videos that it concerns."""
    return _correction(undo(state.store, which.video, which.number))


def _person(person: LibraryPerson) -> LibraryPersonTold:
    return LibraryPersonTold(
        label=tags_in_words(person.label),
        videos=[_in_video(card) for card in person.characters],
        last_seen=None if person.last is None else _last_seen(person.last),
    )


def _in_video(card: CharacterCard) -> PersonInVideo:
    number, label = card.person.number, tags_in_words(card.person.label)
    return PersonInVideo(video=card.video, title=card.title, number=number, label=label)


def _last_seen(last: LastSeen) -> LastSeenTold:
    return LastSeenTold(
        video=last.video,
        title=last.title,
        start_s=last.span.start_ms / 1000,
        end_s=last.span.end_ms / 1000,
        at=last.at.isoformat(),
        seen=last.seen,
        image=None if last.keyframe is None else image_path(last.video, last.keyframe),
    )


def _likely(pair: LikelyCards) -> LikelyTold:
    found = pair.found
    return LikelyTold(
        one=_in_video(pair.one),
        other=_in_video(pair.other),
        alike_in=str(found.kind),
        cosine=found.cosine,
        sure=found.sure,
    )


def _correction(correction: Correction) -> CorrectionTold:
    told = tags_in_words(correction.told)
    return CorrectionTold(number=correction.number, told=told, undone=correction.undone)
