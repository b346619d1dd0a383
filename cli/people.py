"""``homer people``: who is who in a video and in the library, and putting it right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.console import confirm, note, say, say_json, say_table
from cli.options import Json, OneVideo, Profile
from cli.people_of_library import show_joined, show_library, show_likely
from domain.errors import InputError
from domain.people import CharacterRef, Correction, tags_in_words
from flows.workspace import open_workspace
from people import across_videos, corrections
from people.corrections import KnownPerson
from people.forget import Forgotten, restore_forgotten
from people.forget import forget as forget_person
from people.likely_same import join_sure as join_sure_pairs
from store.database import Store, open_store
from store.home import Home
from store.queries.videos import newest_titles
from views.library import resolve_video
from views.people_view import CardPair, likely_same_people
from views.persons_view import likely_across_videos, load_library_people
from views.words import counted, format_span, join_words, plain_line

GUIDE = """List the people of the library or a video, and correct who is who.

'homer people' lists the people of the library: those joined across videos, then others with a name.
A PERSON is a number, a tag (face_3, voice_1) or a name, as 'homer people VIDEO' lists them. A
correction takes effect at once in answers and searches, and also applies to clips that are watched
later. 'homer people undo VIDEO' undoes the latest one.

\b
Examples:
  homer people talk
  homer people rename talk 3 "Ada Lovelace"
  homer people merge talk voice_1 face_3
  homer people split talk Ada voice_2 --name Ruth
  homer people
  homer people merge talk Ada 5 --of interview
"""

Person = Annotated[
    str, typer.Argument(metavar="PERSON", help="Number, tag such as face_3, or name.")
]


OtherVideo = Annotated[
    str | None,
    typer.Option(
        "--of", metavar="VIDEO", help="The other person is one of this video, not of the first."
    ),
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="The most to list.")]
MaybeVideo = Annotated[
    str | None,
    typer.Argument(metavar="VIDEO", help="The video's id, the beginning of it, or its title."),
]


class _PeopleGroup(TyperGroup):
    """A group that takes a video in place of a command: ``homer people talk`` lists its people.

    Without anything it lists the people of the library.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``list`` before an argument that is no command."""
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def show(video: MaybeVideo = None, limit: Limit = 100, json: Json = False) -> None:
    """List the people of a video, with names, tags, and when they were seen and heard.

    'homer people VIDEO' does the same. The source of a name is in brackets: said, read, caption,
    model, or person for a name that a user gave. Without a video it lists the people of the
    library, with the videos that they are in and where they were last seen: first those of several
    videos, then others with a name, beginning with the newest video.

    \b
    Examples:
      homer people
      homer people talk
      homer people list talk --json
    """
    with open_store(Home.default()) as store:
        if video is None:
            return show_library(load_library_people(store, limit=limit), json)
        found = corrections.list_people(store, video)
    if json:
        return say_json([row.model_dump(mode="json") for row in found])
    if not found:
        return note("nobody was recognised yet")
    heads = ("number", "person", "names", "tags", "seen", "heard", "when")
    say_table(heads, map(_row, found))
    for person in found:
        for same in person.maybe:
            if person.number < same.number:
                text = f"person {person.number} may be person {same.number}: {same.reason}"
                note(plain_line(text))
    return None


def _row(person: KnownPerson) -> tuple[object, ...]:
    names = ", ".join(f"{name.name} ({name.source})" for name in person.names)
    tags = " ".join(tag.strip("<>") for tag in person.tags)
    return (
        *(person.number, tags_in_words(person.label), names, tags),
        *(person.seen, person.heard, format_span(person.span) if person.span else ""),
    )


def rename(
    video: OneVideo,
    person: Person,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name, or '' for no name.")],
    json: Json = False,
) -> None:
    """Give a person a name, in all videos that they are joined across.

    It takes precedence over names that Homer learns.

    With '' the person has no name, even if Homer learns one.

    \b
    Examples:
      homer people rename talk 3 "Ada Lovelace"
      homer people rename talk Omar ''
    """
    with open_store(Home.default()) as store:
        _done(across_videos.rename(store, video, person, name), video, json)


def merge(
    video: OneVideo,
    person: Person,
    into: Annotated[
        str,
        typer.Argument(metavar="INTO", help="The person to keep, with number and name."),
    ],
    of: OtherVideo = None,
    json: Json = False,
) -> None:
    """Merge two people who are one. INTO gets the faces, voices and names of PERSON.

    People of two videos are joined: numbers within each video stay, and a name holds in both.

    \b
    Examples:
      homer people merge talk 5 3
      homer people merge talk voice_1 "Ada Lovelace"
      homer people merge talk Ada 5 --of interview
    """
    with open_store(Home.default()) as store:
        if of is not None:
            return _done(across_videos.join(store, video, person, of, into), video, json)
        return _done(corrections.merge(store, video, person, into), video, json)


def split(
    video: OneVideo,
    person: Person,
    tags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TAG]...", help="Faces and voices of the other person."),
    ] = None,
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the other person.")] = "",
    json: Json = False,
) -> None:
    """Split faces or voices off a person. They become a person with a new number.

    Without a tag, the person is split off those of other videos whom they were joined with.

    \b
    Examples:
      homer people split talk 3 voice_2
      homer people split talk Ada face_4 --name Ruth
      homer people split talk Ada
    """
    if name and not tags:
        raise InputError("--name is for faces or voices that are split off: name their tags")
    with open_store(Home.default()) as store:
        if not tags:
            return _done(across_videos.split_off(store, video, person), video, json)
        return _done(corrections.split(store, video, person, tags, name), video, json)


def apart(
    video: OneVideo,
    person: Person,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="Number, tag or name of the other.")
    ],
    of: OtherVideo = None,
    json: Json = False,
) -> None:
    """Keep two people apart. Homer no longer suggests to merge them, nor joins them itself.

    \b
    Examples:
      homer people apart talk 5 3
      homer people apart talk Ada face_4
      homer people apart talk Ada 5 --of interview
    """
    with open_store(Home.default()) as store:
        if of is not None:
            return _done(across_videos.keep_apart(store, video, person, of, other), video, json)
        return _done(corrections.keep_apart(store, video, person, other), video, json)


def alike(
    video: MaybeVideo = None,
    across: Annotated[
        bool, typer.Option("--across", help="Pairs with people of other videos.")
    ] = False,
    join_sure: Annotated[
        bool, typer.Option("--join-sure", help="Join the sure pairs of different videos.")
    ] = False,
    limit: Limit = 20,
    json: Json = False,
) -> None:
    """List pairs who may be one person, the most alike first.

    Confirm a pair with 'homer people merge', reject it with 'homer people apart'. People seen in
    one frame, and rejected pairs, are not listed. Without a video, or with --across, the pairs are
    of different videos; those marked sure are far above the model's threshold.

    \b
    Examples:
      homer people alike talk
      homer people alike
      homer people alike talk --across --join-sure
    """
    with open_store(Home.default()) as store:
        if join_sure:
            return show_joined(_join_sure(store, video), json)
        if across or video is None:
            return show_likely(likely_across_videos(store, video, limit), json)
        found = likely_same_people(store, video, limit)
    if json:
        return say_json([pair.found.model_dump(mode="json") for pair in found])
    if not found:
        return note("no likely duplicates")
    heads = ("number", "person", "other", "person", "alike in", "cosine")
    return say_table(heads, map(_pair_row, found))


def _join_sure(store: Store, video: str | None) -> list[Correction]:
    """Join the sure pairs of a video, or of all."""
    with store.begin() as session:
        videos = newest_titles(session) if video is None else [resolve_video(session, video).id]
    return [made for one in videos for made in join_sure_pairs(store, one)]


def _pair_row(pair: CardPair) -> tuple[object, ...]:
    one, other, found = pair.one.person.label, pair.other.person.label, pair.found
    named = (tags_in_words(one), tags_in_words(other))
    return found.one, named[0], found.other, named[1], found.kind, f"{found.cosine:.2f}"


def forget(
    video: OneVideo,
    person: Person,
    keep_undo: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what is needed to undo this to a new file."),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Also in the videos that they are joined across.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Delete all data of a person: face, voice, images, name and tags.

    Images that show the person are deleted, and all answers about the video, since they may show
    the person. What the person said is kept as said by somebody. Only the file of --keep-undo can
    undo this, with 'homer people undo VIDEO --from FILE'. The video file and exports are not
    changed. If the video is watched further, the person is recognised as a new one.

    With --everywhere they are forgotten in all videos that they are joined across, and --keep-undo
    names a folder, which gets a file for each video.

    \b
    Examples:
      homer people forget talk 3
      homer people forget talk Ada --keep-undo ada.zip
      homer people forget talk Ada --everywhere --keep-undo ada
    """
    with open_store(Home.default()) as store:
        characters = across_videos.characters_of_person(store, video, person)
        with store.begin() as session:
            videos = {one.video: resolve_video(session, one.video) for one in characters}
    chosen = characters if everywhere else characters[:1]
    if not yes:
        undone = f"only {keep_undo} can undo it" if keep_undo else "it cannot be undone"
        titles = join_words(list(dict.fromkeys(videos[one.video].title for one in chosen)))
        confirm(f"Forget {person} in {titles}? ({undone})")
    # The named video is last: until then the command can be repeated.
    done = [
        _forget_one(one, profile or videos[one.video].profile, _undo_file(keep_undo, one, chosen))
        for one in reversed(chosen)
    ]
    if json:
        return say_json([asdict(one) for one in done] if everywhere else asdict(done[0]))
    for forgotten in done:
        _show_forgotten(forgotten)
    return None


def _undo_file(
    keep_undo: Path | None, one: CharacterRef, chosen: Sequence[CharacterRef]
) -> Path | None:
    """Return where a file that restores a character is written: of several, in a new folder."""
    if keep_undo is None or len(chosen) == 1:
        return keep_undo
    keep_undo.mkdir(parents=True, exist_ok=True)
    return keep_undo / f"{one.video}-{one.number}.zip"


def _forget_one(one: CharacterRef, profile: str, keep_undo: Path | None) -> Forgotten:
    # Texts that change get vectors of the kind that the others have.
    with open_workspace(profile) as workspace:
        text = workspace.toolbox.text
        done = forget_person(workspace.store, one.video, str(one.number), text, keep_undo)
    if keep_undo:
        note(f"undo it with: homer people undo {one.video} --from {keep_undo}")
    return done


def _show_forgotten(done: Forgotten) -> None:
    if done.path:
        note(
            f"the file is still called {plain_line(done.path)}: "
            "rename it, then homer ingest finds it"
        )
    if done.alerts:
        note(f"removed {counted(done.alerts, 'alert')} that named them")
    rewritten = f"{counted(done.rewritten, 'text')} rewritten"
    deleted = f"{counted(done.images, 'image')} and {counted(done.answers, 'answer')} deleted"
    say(f"person {done.number} is forgotten: {rewritten}, {deleted}")


def undo(
    video: OneVideo,
    number: Annotated[
        int | None,
        typer.Argument(
            metavar="[NUMBER]",
            min=1,
            help="Number of the correction in 'homer people history'. Default: the latest.",
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Restore a forgotten person from a --keep-undo file."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Undo the latest correction of a video, or the one with a number.

    A correction that later ones depend on can be undone after them only.

    \b
    Examples:
      homer people undo talk
      homer people undo talk 2
      homer people undo talk --from ada.zip
    """
    with open_store(Home.default()) as store:
        if source is not None:
            return _restore(store, video, source, json)
        correction = corrections.undo(store, video, number)
    if json:
        return say_json(correction.model_dump(mode="json"))
    return say(f"undone: {_line(correction)}")


def _restore(store: Store, video: str, source: Path, json: bool) -> None:
    rows = restore_forgotten(store, video, source)
    say_json({"rows": rows}) if json else say(f"restored, with {counted(rows, 'record')}")


def history(video: OneVideo, json: Json = False) -> None:
    """List the corrections of a video with their numbers, the oldest first.

    \b
    Example:
      homer people history talk
    """
    with open_store(Home.default()) as store:
        found = corrections.history(store, video)
    if json:
        return say_json([row.model_dump(mode="json") for row in found])
    if not found:
        return note("nothing was corrected yet: homer people --help says how")
    for correction in found:
        say(f"{_line(correction)}{'  (undone)' if correction.undone else ''}")
    return None


def _done(correction: Correction, video: str, json: bool) -> None:
    if json:
        return say_json(correction.model_dump(mode="json"))
    say(_line(correction))
    return note(f"undo it with: homer people undo {plain_line(video)}")


def _line(correction: Correction) -> str:
    """Format a correction: ``2: Merged Omar (person 3) into Ada (person 1)``."""
    return f"{correction.number}: {plain_line(tags_in_words(correction.told))}"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(cls=_PeopleGroup, rich_markup_mode=None)
    for name, command in (
        ("list", show),
        ("rename", rename),
        ("merge", merge),
        ("split", split),
        ("alike", alike),
        ("apart", apart),
        ("forget", forget),
        ("undo", undo),
        ("history", history),
    ):
        without_arguments = command in (show, alike)
        group.command(name, no_args_is_help=not without_arguments)(command)
    app.add_typer(group, name="people", help=GUIDE)
