"""How a video's portrait reads."""

from __future__ import annotations

from typing import Any

import pytest

from cli.portrait import SHOWN_LINES
from cli.render import render
from domain.media import Box, SeenObject, Video
from domain.memories import Edge, Relation, Segment
from domain.moments import Moment
from domain.people import KnownName, PersonOfVideo
from domain.time import TimeSpan
from library.memory import ShownClip, VideoDetails
from library.usage import CallTotals

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


def test_an_inferred_edge_says_how_sure_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert "    causes Talk (0.70)" in shown(capsys, edges=(edge(explicit=False),))


@pytest.mark.parametrize(
    ("attempts", "given_up", "output"),
    [
        (1, False, "failed (1x; the next homer ingest tries it again)"),
        (3, True, "failed (3x; homer ingest --again tries it again)"),
    ],
)
def test_a_failed_clip_says_why_how_often_and_how_it_is_tried_again(
    capsys: pytest.CaptureFixture[str], attempts: int, given_up: bool, output: str
) -> None:
    failed = clip(1, state="failed", error="no\nanswer")
    failed = failed.model_copy(update={"attempts": attempts, "given_up": given_up})
    lines = shown(capsys, clips=(clip(0), failed), state="failed", error="1 clips are left")
    assert f"clip 1  0:30-1:00  {output}  no answer" in lines
    assert "  1 clips are left" in lines


def test_what_each_clip_and_all_took_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    cost = CallTotals(calls=3, failed=1, tokens_in=900, tokens_out=80, cost_usd=0.0123)
    dear = clip(0).model_copy(update={"cost": cost, "seconds": 4.26})
    lines = shown(capsys, clips=(dear, clip(1)), cost=cost, seconds=4.26)
    spent = "3 calls (1 failed), 900+80 tokens, $0.0123, 4.3 s"
    assert f"clip 0  0:00-0:30  [{spent}]" in lines
    assert "clip 1  0:30-1:00" in lines
    assert f"  watching took {spent}" in lines


@pytest.mark.parametrize(
    ("left_out", "output"),
    [
        ((), "(at most 60000 tokens)"),
        (
            ("6 of 8 faces", "2 of 3 keyframes"),
            "(at most 60000 tokens without 6 of 8 faces, 2 of 3 keyframes)",
        ),
    ],
)
def test_a_clip_tells_its_budget_and_what_its_writer_was_not_shown(
    left_out: tuple[str, ...], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kept_to = clip(0).model_copy(update={"budget": 60_000, "left_out": left_out})
    assert f"clip 0  0:00-0:30  {output}" in shown(capsys, clips=(kept_to,))


def test_costs_add_up() -> None:
    one = CallTotals(calls=1, tokens_in=10, cost_usd=0.5, ms=15)
    both = one + CallTotals(calls=2, failed=1, tokens_out=7, ms=10)
    assert both == CallTotals(calls=3, failed=1, tokens_in=10, tokens_out=7, cost_usd=0.5, ms=25)


def test_a_video_says_what_its_images_and_its_words_come_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    video = portrait().video.model_copy(update={"subtitles": (".en.srt 12ab", "2 chapters")})
    lines = shown(capsys, video=video, models={"images": "clip:tiny"})
    assert "  images are found by their likeness (clip:tiny)" in lines
    assert "  with subtitles: .en.srt 12ab, 2 chapters" in lines


def test_things_are_reported_where_no_line_does(capsys: pytest.CaptureFixture[str]) -> None:
    box = Box(x0=0, y0=0, x1=1, y1=1)
    things = (SeenObject(time_ms=1, label="cup", score=0.9, box=box),)
    output = line(0).model_copy(update={"source": "objects", "text": "Seen: a cup."})
    seen = clip(0).model_copy(update={"objects": things})
    assert "  seen: a cup" in shown(capsys, clips=(seen,))
    assert "  seen: a cup" not in shown(
        capsys, clips=(seen.model_copy(update={"lines": (output,)}),)
    )


def test_what_was_not_seen_yet_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert "  seen as of clip 0 of 2" in shown(capsys, last_clip=0)


def test_many_lines_are_cut_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    many = tuple(line(number) for number in range(SHOWN_LINES + 3))
    assert "  and 3 more lines (--json has all)" in shown(capsys, clips=(clip(0, *many),))


def test_a_recording_has_no_picture(capsys: pytest.CaptureFixture[str]) -> None:
    video = portrait().video.model_copy(update={"has_video": False, "has_audio": False})
    assert "  no picture, no sound, profile local" in shown(capsys, video=video)
