"""``homer people``: who is who in a video, and putting it right."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli.console import confirm, note, say, say_json, say_table
from cli.options import Json, OneVideo, Profile
from domain.people import Correction, tags_in_words
from flows.workspace import open_workspace
from people import corrections
from people.corrections import KnownPerson
from people.forget import forget as forget_person
from people.forget import restore_forgotten
from store.database import Store, open_store
from store.home import Home
from views.library import resolve_video
from views.people_view import CardPair, likely_same_people
from views.words import counted, format_span, plain_line

GUIDE = """List the people of a video, and correct who is who.

A PERSON is a number, a tag (face_3, voice_1) or a name, as 'homer people VIDEO' lists them. A
correction takes effect at once in answers and searches, and also applies to clips that are watched
later. 'homer people undo VIDEO' undoes the latest one.

\b
Examples:
  homer people talk
  homer people rename talk 3 "Ada Lovelace"
  homer people merge talk voice_1 face_3
  homer people split talk Ada voice_2 --name Ruth
"""

Person = Annotated[
    str, typer.Argument(metavar="PERSON", help="Number, tag such as face_3, or name.")
]


class _PeopleGroup(TyperGroup):
    """A group that takes a video in place of a command: ``homer people talk`` lists its people."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put ``list`` before an argument that is no command."""
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["list", *args]
        return super().parse_args(ctx, args)


def show(video: OneVideo, json: Json = False) -> None:
    """List the people of a video, with names, tags, and when they were seen and heard.

    'homer people VIDEO' does the same. The source of a name is in brackets: said, read, caption,
    model, or person for a name that a user gave.

    \b
    Examples:
      homer people talk
      homer people list talk --json
    """
    with open_store(Home.default()) as store:
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
    """Give a person a name. It takes precedence over names that Homer learns.

    With '' the person has no name, even if Homer learns one.

    \b
    Examples:
      homer people rename talk 3 "Ada Lovelace"
      homer people rename talk Omar ''
    """
    with open_store(Home.default()) as store:
        _done(corrections.rename(store, video, person, name), video, json)


def merge(
    video: OneVideo,
    person: Person,
    into: Annotated[
        str,
        typer.Argument(metavar="INTO", help="The person to keep, with number and name."),
    ],
    json: Json = False,
) -> None:
    """Merge two people who are one. INTO gets the faces, voices and names of PERSON.

    \b
    Examples:
      homer people merge talk 5 3
      homer people merge talk voice_1 "Ada Lovelace"
    """
    with open_store(Home.default()) as store:
        _done(corrections.merge(store, video, person, into), video, json)


def split(
    video: OneVideo,
    person: Person,
    tags: Annotated[
        list[str], typer.Argument(metavar="TAG", help="Faces and voices of the other person.")
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the other person.")] = "",
    json: Json = False,
) -> None:
    """Split faces or voices off a person. They become a person with a new number.

    \b
    Examples:
      homer people split talk 3 voice_2
      homer people split talk Ada face_4 --name Ruth
    """
    with open_store(Home.default()) as store:
        _done(corrections.split(store, video, person, tags, name), video, json)


def apart(
    video: OneVideo,
    person: Person,
    other: Annotated[
        str, typer.Argument(metavar="OTHER", help="Number, tag or name of the other.")
    ],
    json: Json = False,
) -> None:
    """Keep two people apart. Homer no longer suggests to merge them, nor joins them itself.

    \b
    Examples:
      homer people apart talk 5 3
      homer people apart talk Ada face_4
    """
    with open_store(Home.default()) as store:
        _done(corrections.keep_apart(store, video, person, other), video, json)


def alike(video: OneVideo, json: Json = False) -> None:
    """List pairs who may be one person, the most alike first.

    Confirm a pair with 'homer people merge', reject it with 'homer people apart'. People seen in
    one frame, and rejected pairs, are not listed.

    \b
    Example:
      homer people alike talk
    """
    with open_store(Home.default()) as store:
        found = likely_same_people(store, video)
    if json:
        return say_json([pair.found.model_dump(mode="json") for pair in found])
    if not found:
        return note("no likely duplicates")
    heads = ("number", "person", "other", "person", "alike in", "cosine")
    return say_table(heads, map(_pair_row, found))


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
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    profile: Profile = None,
    json: Json = False,
) -> None:
    """Delete all data of a person: face, voice, images, name and tags.

    Images that show the person are deleted, and all answers about the video, since they may show
    the person. What the person said is kept as said by somebody. Only the file of --keep-undo can
    undo this, with 'homer people undo VIDEO --from FILE'. The video file and exports are not
    changed. If the video is watched further, the person is recognised as a new one.

    \b
    Examples:
      homer people forget talk 3
      homer people forget talk Ada --keep-undo ada.zip
    """
    with open_store(Home.default()) as store, store.begin() as session:
        found = resolve_video(session, video)
    # Texts that change get vectors of the kind that the others have.
    with open_workspace(profile or found.profile) as workspace:
        if not yes:
            undone = f"only {keep_undo} can undo it" if keep_undo else "it cannot be undone"
            confirm(f"Forget {person} in {found.title}? ({undone})")
        done = forget_person(workspace.store, video, person, workspace.toolbox.text, keep_undo)
    if keep_undo:
        note(f"undo it with: homer people undo {plain_line(video)} --from {keep_undo}")
    if done.path:
        note(
            f"the file is still called {plain_line(done.path)}: "
            "rename it, then homer ingest finds it"
        )
    if json:
        return say_json(asdict(done))
    if done.alerts:
        note(f"removed {counted(done.alerts, 'alert')} that named them")
    rewritten = f"{counted(done.rewritten, 'text')} rewritten"
    deleted = f"{counted(done.images, 'image')} and {counted(done.answers, 'answer')} deleted"
    return say(f"person {done.number} is forgotten: {rewritten}, {deleted}")


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
    group = typer.Typer(cls=_PeopleGroup, no_args_is_help=True, rich_markup_mode=None)
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
        group.command(name, no_args_is_help=True)(command)
    app.add_typer(group, name="people", help=GUIDE)
