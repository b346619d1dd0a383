"""How a video's portrait reads."""

from __future__ import annotations

from typing import Any

import pytest

from cli.portrait import SHOWN_LINES
from cli.render import render
from domain.calls import CallTotals
from domain.media import Box, SeenObject, Video
from domain.memories import Edge, Relation, Segment
from domain.moments import Moment
from domain.people import KnownName, PersonOfVideo
from domain.time import TimeSpan
from library.memory import ShownClip, VideoDetails

VIDEO = "0123456789abcdef"


def line(number: int, text: str = "a word") -> Moment:
    span = TimeSpan.of(number * 1000, number * 1000 + 500)
    return Moment(ref=f"m{number + 1}", span=span, kind="episodic", source="said", text=text)


def clip(index: int, *lines: Moment, state: str = "done", error: str | None = None) -> ShownClip:
    span = TimeSpan.of(index * 30_000, (index + 1) * 30_000)
    return ShownClip(index=index, span=span, state=state, error=error, lines=lines)


def segment(number: int, label: str) -> Segment:
    span = TimeSpan.of(0, 30_000)
    return Segment(
        id=number, video=VIDEO, number=number, label=label, summary="", clips=(0,), span=span
    )


def edge(explicit: bool) -> Edge:
    return Edge(
        id=1,
        source=1,
        target=2,
        relation=Relation.CAUSES,
        explicit=explicit,
        confidence=0.7,
        rationale="because",
    )


def portrait(**changes: Any) -> VideoDetails:
    video = Video(
        id=VIDEO, title="talk\x1b[31m", path=None, duration_ms=60_000, width=640, height=360
    )
    person = PersonOfVideo(
        video=VIDEO,
        title="talk",
        number=1,
        label="Omar",
        tags=("<face_0>", "<voice_2>"),
        names=(KnownName(name="Omar", source="read", from_clip=0),),
    )
    plain = VideoDetails(
        video=video,
        state="done",
        error=None,
        models={},
        last_clip=1,
        clips=(clip(0, line(1)), clip(1)),
        people=(person,),
        segments=(segment(1, "Opening"), segment(2, "Talk")),
        edges=(edge(explicit=True),),
    )
    return plain.model_copy(update=changes)


def shown(capsys: pytest.CaptureFixture[str], **changes: Any) -> list[str]:
    render(portrait(**changes), json=False)
    return capsys.readouterr().out.splitlines()


def test_a_portrait_reads_from_the_whole_to_the_clips(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys) == [
        "talk [31m  0123456789abcdef  1:00  done",
        "  640x360, with sound, profile local",
        "  images are found by descriptions and words of their time (no image-text model)",
        "people",
        "  Omar  face_0 voice_2  Omar (read)",
        "segments",
        "  0:00-0:30  Opening  [s1]",
        "    causes Talk (said so)",
        "  0:00-0:30  Talk  [s2]",
        "clip 0  0:00-0:30",
        "  0:01  said: a word  [m2]",
        "clip 1  0:30-1:00",
    ]


FAILED_CLIP = clip(1, state="failed", error="no\nanswer").model_copy(update={"attempts": 3})
GIVEN_UP = FAILED_CLIP.model_copy(update={"given_up": True})
COST = CallTotals(calls=3, failed=1, tokens_in=900, tokens_out=80, cost_usd=0.0123)
DEAR = {"cost": COST, "seconds": 4.26}
SPENT = "3 calls (1 failed), 900+80 tokens, $0.0123, 4.3 s"
BUDGETED = clip(0).model_copy(update={"budget": 60_000, "left_out": ("6 of 8 faces", "a cup")})
CUP = SeenObject(time_ms=1, label="cup", score=0.9, box=Box(x0=0, y0=0, x1=1, y1=1))
WITH_CUP = clip(0).model_copy(update={"objects": (CUP,)})
FILM = portrait().video
MANY = clip(0, *(line(number) for number in range(SHOWN_LINES + 3)))


@pytest.mark.parametrize(
    ("changes", "output"),
    [
        ({"edges": (edge(explicit=False),)}, "causes Talk (0.70)"),
        ({"clips": (clip(0), FAILED_CLIP)}, "failed (3x; the next homer ingest tries it again)"),
        ({"clips": (clip(0), GIVEN_UP)}, "failed (3x; homer ingest --again tries it again)"),
        ({"clips": (clip(0), FAILED_CLIP)}, "no answer"),
        ({"state": "failed", "error": "1 clips are left"}, "  1 clips are left"),
        ({"clips": (clip(0).model_copy(update=DEAR),)}, f"clip 0  0:00-0:30  [{SPENT}]"),
        (DEAR, f"took {SPENT}"),
        ({"clips": (BUDGETED,)}, "(at most 60000 tokens without 6 of 8 faces, a cup)"),
        ({"models": {"images": "clip:tiny"}}, "(clip:tiny)"),
        ({"video": FILM.model_copy(update={"subtitles": (".en.srt", "2 chapters")})}, "2 chapters"),
        ({"clips": (WITH_CUP,)}, "  seen: a cup"),
        ({"last_clip": 0}, "as of clip 0 of 2"),
        ({"clips": (MANY,)}, "and 3 more lines"),
        ({"video": FILM.model_copy(update={"has_video": False})}, "no picture, with sound"),
    ],
)
def test_a_portrait_has_what_there_is(
    changes: dict[str, Any], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert output in "\n".join(shown(capsys, **changes))
    assert output not in "\n".join(shown(capsys))
