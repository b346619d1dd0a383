"""Who is who in a video and in the library, and putting it right."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, PositiveInt

from domain.errors import InputError
from domain.people import CharacterRef, Correction, Forgotten, LibraryPerson, PersonOfVideo
from domain.words import counted, join_words, marked
from flows.workspace import Workspace
from library.params import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    AsOf,
    Confirm,
    Limit,
    Offset,
    OnCommandLine,
    Page,
    VideoName,
    agreed,
    page,
)
from library.persons import (
    LikelyPeople,
    in_full,
    likely_across,
    likely_within,
    persons_in_full,
    persons_of_library,
)
from people import across_videos, corrections, likely_same
from people.corrections import MAX_NAME, find_person
from people.corrections import people_of_video as read_people
from people.forget import forget, restore_forgotten
from store.database import Store
from store.queries.characters import appearances_of
from store.queries.videos import find_video, newest_titles

MOST_VIDEOS = 30
"""The newest videos whose people are compared with those of all others."""

PersonName = Annotated[
    str,
    Field(max_length=200, description="Number, tag such as face_3, or name."),
    OnCommandLine(metavar="PERSON"),
]
MaybeVideo = Annotated[
    str | None,
    Field(max_length=400, description="The video's id, the beginning of it, or its title."),
    OnCommandLine(metavar="VIDEO", argument=True),
]
OtherVideo = Annotated[
    str | None,
    Field(max_length=400, description="The other person is one of this video, not of the first."),
    OnCommandLine("--of", metavar="VIDEO"),
]


def people(
    store: Store,
    video: MaybeVideo = None,
    as_of: AsOf = None,
    offset: Offset = 0,
    limit: Limit = MAX_LIMIT,
) -> Page[PersonOfVideo] | Page[LibraryPerson]:
    """List the people of a video, with names, tags, and when they were seen and heard.

    'homer people VIDEO' does the same. The source of a name is in brackets: said, read, caption,
    model, or person for a name that a user gave. Without a video it lists the people of the
    library, with the videos that they are in and where they were last seen: first those of several
    videos, then others with a name, beginning with the newest video.

    Examples:
      homer people
      homer people talk
      homer people list talk --json

    Raises:
        InputError: a time is given without a video.
        NotFound: there is no such video.
        Ambiguous: several go by that name.
    """
    if video is not None:
        return people_of_video(store, video, as_of, offset, limit)
    if as_of is not None:
        raise InputError("a time is one of a video: name the video, too")
    return people_of_library(store, offset, limit)


def people_of_video(
    store: Store,
    video: VideoName,
    as_of: AsOf = None,
    offset: Offset = 0,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[PersonOfVideo]:
    """List the people of a video by number, with all known names.

    Raises:
        NotFound: there is no such video.
        Ambiguous: several go by that name.
    """
    with store.begin(snapshot=True) as session:
        found = read_people(session, video, as_of)
        shown = in_full(session, found, found.characters[offset : offset + limit])
    return page(shown, len(found.characters), offset)


def most_seen(store: Store, video: str, limit: int) -> Page[PersonOfVideo]:
    """Return the people of a video who appear most.

    Raises:
        NotFound: there is no such video.
        Ambiguous: several go by that name.
    """
    with store.begin(snapshot=True) as session:
        found = read_people(session, video)
        times = appearances_of(
            session,
            found.video.id,
            [row for one in found.characters for row in one.members],
            found.last_clip,
        )
        most = sorted(
            found.characters,
            key=lambda one: -sum(times[row][0] for row in one.members if row in times),
        )
        shown = in_full(session, found, most[:limit])
    return page(shown, len(found.characters), 0)


def people_of_library(
    store: Store, offset: Offset = 0, limit: Limit = DEFAULT_LIMIT
) -> Page[LibraryPerson]:
    """List the people of all videos who have a name or are in several, with where last seen.

    Those of several videos come first, then others with a name, beginning with the newest video.
    """
    with store.begin(snapshot=True) as session:
        everybody = list(persons_of_library(session, list(newest_titles(session))))
        shown = persons_in_full(session, everybody[offset : offset + limit])
    return page(shown, len(everybody), offset)


def person_of_library(store: Store, video: VideoName, person: PersonName) -> LibraryPerson:
    """Return a person of a video, with all videos that they are joined across.

    Raises:
        NotFound: there is no such video or person.
        Ambiguous: several go by that name.
    """
    with store.begin(snapshot=True) as session:
        found = read_people(session, video)
        number = find_person(found, person).character.number
        ref = CharacterRef(video=found.video.id, number=number)
        (shown,) = persons_in_full(session, [across_videos.person_links(session).person_of(ref)])
    return shown


def likely_same_people(
    store: Store,
    video: MaybeVideo = None,
    across: Annotated[bool, Field(description="Pairs with people of other videos.")] = False,
    limit: Limit = DEFAULT_LIMIT,
) -> list[LikelyPeople]:
    """List pairs who may be one person, the most alike first.

    Confirm a pair with 'homer people merge', reject it with 'homer people apart'. People seen in
    one frame, and rejected pairs, are not listed. Without a video, or with --across, the pairs are
    of different videos; those marked sure are far above the model's threshold.

    Examples:
      homer people alike talk
      homer people alike
      homer people alike talk --across

    Raises:
        NotFound: there is no such video.
        Ambiguous: several go by that name.
    """
    with store.begin(snapshot=True) as session:
        if video is not None and not across:
            return likely_within(session, video, limit)
        if video is not None:
            return likely_across(session, [find_video(session, video).id], limit)
        return likely_across(session, list(newest_titles(session))[:MOST_VIDEOS], limit)


def join_sure_people(store: Store, video: MaybeVideo = None) -> list[Correction]:
    """Join the sure pairs of a video with people of other videos, or of all videos.

    Each pair is a correction of its own, which can be undone.

    Examples:
      homer people join-sure
      homer people join-sure talk

    Raises:
        NotFound: there is no such video.
        Ambiguous: several go by that name.
    """
    with store.begin() as session:
        videos = newest_titles(session) if video is None else [find_video(session, video).id]
    return [made for one in videos for made in likely_same.join_sure(store, one)]


def rename_person(
    store: Store,
    video: VideoName,
    person: PersonName,
    name: Annotated[str, Field(max_length=MAX_NAME, description="The name, or '' for no name.")],
) -> Correction:
    """Give a person a name, in all videos that they are joined across.

    It takes precedence over names that Homer learns.

    With '' the person has no name, even if Homer learns one.

    Examples:
      homer people rename talk 3 "Ada Lovelace"
      homer people rename talk Omar ''

    Raises:
        NotFound: there is no such video or person.
        Ambiguous: several go by that name.
        InputError: the person goes by this name already, or has none to remove.
    """
    return across_videos.rename(store, video, person, name)


def merge_people(
    store: Store,
    video: VideoName,
    person: PersonName,
    into: Annotated[
        str,
        Field(max_length=200, description="The person to keep, with number and name."),
        OnCommandLine(metavar="INTO"),
    ],
    other_video: OtherVideo = None,
) -> Correction:
    """Merge two people who are one. INTO gets the faces, voices and names of PERSON.

    People of two videos are joined: numbers within each video stay, and a name holds in both.

    Examples:
      homer people merge talk 5 3
      homer people merge talk voice_1 "Ada Lovelace"
      homer people merge talk Ada 5 --of interview

    Raises:
        NotFound: there is no such video or person.
        Ambiguous: several go by that name.
        InputError: they are one already, or were said to be two.
    """
    if other_video is None:
        return corrections.merge(store, video, person, into)
    return across_videos.join(store, video, person, other_video, into)


def keep_people_apart(
    store: Store,
    video: VideoName,
    person: PersonName,
    other: Annotated[
        str,
        Field(max_length=200, description="Number, tag or name of the other."),
        OnCommandLine(metavar="OTHER"),
    ],
    other_video: OtherVideo = None,
) -> Correction:
    """Keep two people apart. Homer no longer suggests to merge them, nor joins them itself.

    Examples:
      homer people apart talk 5 3
      homer people apart talk Ada face_4
      homer people apart talk Ada 5 --of interview

    Raises:
        NotFound: there is no such video or person.
        Ambiguous: several go by that name.
        InputError: they are one, or two already.
    """
    if other_video is None:
        return corrections.keep_apart(store, video, person, other)
    return across_videos.keep_apart(store, video, person, other_video, other)


def split_person(
    store: Store,
    video: VideoName,
    person: PersonName,
    tags: Annotated[
        tuple[Annotated[str, Field(max_length=40)], ...],
        Field(max_length=1000, description="Faces and voices of the other person."),
        OnCommandLine(metavar="TAG", argument=True),
    ] = (),
    name: Annotated[
        str,
        Field(max_length=MAX_NAME, description="Name of the other person."),
        OnCommandLine(metavar="NAME"),
    ] = "",
) -> Correction:
    """Split faces or voices off a person. They become a person with a new number.

    Without a tag, the person is split off those of other videos whom they were joined with.

    Examples:
      homer people split talk 3 voice_2
      homer people split talk Ada face_4 --name Ruth
      homer people split talk Ada

    Raises:
        NotFound: there is no such video or person.
        Ambiguous: several go by that name.
        InputError: a tag is not of this person, nobody would be left, or without a tag: they are
            joined with nobody, or a name is given.
    """
    if tags:
        return corrections.split(store, video, person, tags, name)
    if name:
        raise InputError("a name is for faces or voices that are split off: name their tags")
    return across_videos.split_off(store, video, person)


def undo_people(
    store: Store,
    video: VideoName,
    number: Annotated[
        PositiveInt | None,
        Field(description="Number of the correction in the history. Default: the latest."),
        OnCommandLine(metavar="NUMBER", argument=True),
    ] = None,
    source: Annotated[
        Path | None,
        Field(description="Restore a forgotten person from a --keep-undo file."),
        OnCommandLine("--from", metavar="FILE", only=True),
    ] = None,
) -> Correction | str:
    """Undo the latest correction of a video, or the one with a number.

    It is undone in all videos that it concerns. A correction that later ones depend on can be
    undone after them only.

    Examples:
      homer people undo talk
      homer people undo talk 2
      homer people undo talk --from ada.zip

    Raises:
        NotFound: there is no such video or correction.
        InputError: it is undone already, a later one depends on it, or the file cannot be used.
    """
    if source is None:
        return corrections.undo(store, video, number)
    records = counted(restore_forgotten(store, video, source), "record")
    return marked(f"Restored the person, with {records}.")


def people_history(store: Store, video: VideoName) -> list[Correction]:
    """List the corrections of a video with their numbers, the oldest first.

    Examples:
      homer people history talk

    Raises:
        NotFound: there is no such video.
        Ambiguous: several go by that name.
    """
    return corrections.history(store, video)


def forget_person(
    workspace: Workspace,
    video: VideoName,
    person: PersonName,
    everywhere: Annotated[
        bool, Field(description="Also in the videos that they are joined across.")
    ] = False,
    keep_undo: Annotated[
        Path | None,
        Field(description="Write what is needed to undo this to a new file."),
        OnCommandLine(metavar="FILE", only=True),
    ] = None,
    confirm: Confirm = agreed,
) -> list[Forgotten]:
    """Delete all data of a person: face, voice, images, name and tags.

    Images that show the person are deleted, and all answers about the video, since they may show
    the person. What the person said is kept as said by somebody. Only the file of --keep-undo can
    undo this, with 'homer people undo VIDEO --from FILE'. The video file and exports are not
    changed. If the video is watched further, the person is recognised as a new one.

    With --everywhere they are forgotten in all videos that they are joined across, and --keep-undo
    names a folder, which gets a file for each video. If that is interrupted, the same goes on.

    Examples:
      homer people forget talk 3
      homer people forget talk Ada --keep-undo ada.zip
      homer people forget talk Ada --everywhere --keep-undo ada

    Raises:
        NotFound: there is no such video or person.
        Ambiguous: several go by that name.
        InputError: the file is there already, is in Homer's data, or cannot be written.
    """
    store = workspace.store
    chosen = across_videos.characters_of_person(store, video, person)
    chosen = chosen if everywhere else chosen[:1]
    with store.begin() as session:
        videos = {one.video: find_video(session, one.video) for one in chosen}
    undone = f"only {keep_undo} can undo it" if keep_undo else "it cannot be undone"
    titles = join_words(list(dict.fromkeys(one.title for one in videos.values())))
    confirm(f"Forget {person} in {titles}? ({undone})")
    done = []
    # The named video is last: until then the act can be repeated.
    for one in reversed(chosen):
        file = keep_undo
        if keep_undo is not None and everywhere:
            keep_undo.mkdir(parents=True, exist_ok=True)
            file = keep_undo / undo_name(one)
        # Texts that change get vectors of the kind that the others have.
        text = workspace.searching.text
        done.append(forget(store, one.video, str(one.number), text, file))
    return done


def undo_name(one: CharacterRef) -> str:
    """Return the name of the file that restores a forgotten character."""
    return f"person-{one.number}-of-{one.video}.zip"
