"""What a language model says of one clip joins nobody: it needs another clip, or what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from domain.media import ClipState
from library.memory import show_video
from memory.writers.llm_clip import LlmClipWriter, WrittenClip, WrittenName, WrittenSame
from memory.writers.llm_clip import WrittenLine as Line
from memory.writers.port import Writers
from people.corrections import keep_apart
from store.database import Store
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    percept,
    remember,
    said,
    voice,
)
from tests.support.several_videos import list_people

JOINED = [("<face_0>", "<voice_0>")]
SAME = WrittenSame(face="<face_0>", voice="<voice_0>", reason="his lips move")


@dataclass
class Chat:
    """A language model that says of each clip what it is told to."""

    says: list[WrittenClip]
    sees: bool = False

    def ask(self, *_: object, **__: object) -> WrittenClip:
        return self.says.pop(0)


def reported(same: Sequence[WrittenSame] = (), names: Sequence[WrittenName] = ()) -> WrittenClip:
    return WrittenClip(
        lines=[Line(kind="episodic", text="They talk.")], same=list(same), names=list(names)
    )


def watch(store: Store, n: int, clip: WrittenClip, alone_s: float = 0) -> None:
    """Two are in view while somebody speaks, of whom the first is alone for so long."""
    start = 30 * n
    both = (start, start + 9)
    seen = percept(
        n,
        faces=(face(0, 1, (start, start + 9 + alone_s)), face(1, 2, both)),
        voices=(voice(0, 1, (start, start + 9 + alone_s)),),
        utterances=(said(start, "Words.", voice=0),),
    )
    chat: Any = Chat([clip])
    writers = Writers(LlmClipWriter(lambda *_: chat), local_writers().event)
    assert remember(store, VIDEO, Perceived(seen), writers, Tools(), SETTINGS) == ClipState.DONE


def together(store: Store) -> list[tuple[str, ...]]:
    """The tags of each character that has a face and a voice."""
    people = show_video(store, VIDEO).people
    return [one.tags for one in people if len({tag[:5] for tag in one.tags}) > 1]


@pytest.fixture
def video(store: Store) -> Store:
    known_video(store, 4)
    return store


def test_one_statement_joins_nobody_and_a_second_of_another_clip_does(video: Store) -> None:
    watch(video, 0, reported([SAME]))
    assert together(video) == []
    watch(video, 1, reported())
    assert together(video) == []
    watch(video, 2, reported([SAME]))
    assert together(video) == JOINED


def test_what_was_seen_bears_a_statement_out(video: Store) -> None:
    """That face alone is in view while the voice speaks, for too short to tell by itself."""
    watch(video, 0, reported([SAME]), alone_s=2.5)
    assert together(video) == JOINED


def test_the_same_said_in_several_ways_of_one_clip_is_one_statement(video: Store) -> None:
    called = [WrittenName(tag=tag, name="Ann") for tag in ("<face_0>", "<voice_0>")]
    watch(video, 0, reported([SAME, SAME], called))
    assert together(video) == []


def test_a_name_that_only_model_gives_to_both_is_one_statement_however_often(video: Store) -> None:
    called = [WrittenName(tag=tag, name="Ann") for tag in ("<face_0>", "<voice_0>")]
    for n in range(3):
        watch(video, n, reported(names=called))
        assert together(video) == []
    watch(video, 3, reported([SAME]))
    assert together(video) == JOINED


def test_a_statement_that_waits_is_listed_with_its_reason(video: Store) -> None:
    watch(video, 0, reported([SAME]))
    listed = {one.number: one for one in list_people(video, VIDEO)}
    assert [(same.number, same.reason) for same in listed[0].maybe] == [(2, "his lips move")]
    assert ([same.number for same in listed[2].maybe], listed[1].maybe) == ([0], ())
    keep_apart(video, VIDEO, "<face_0>", "<voice_0>")
    assert not any(one.maybe for one in list_people(video, VIDEO))
    watch(video, 1, reported([SAME]))
    assert not any(one.maybe for one in list_people(video, VIDEO))


def test_the_unsure_is_told(video: Store, monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    watch(video, 0, reported([SAME]))
    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    result = CliRunner().invoke(app, ["people", VIDEO])
    assert result.exit_code == 0
    assert "person 0 may be person 2: his lips move" in result.output
