"""Real files of every kind, decoded: what is shown and heard when, and where nothing is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from domain.errors import InputError, MediaError
from domain.settings import WatchSettings
from perception.containers import StreamClock
from perception.decode import RawClip, decode_frames, read_clips
from perception.hearing import speaking_track
from perception.source import probe, probe_source
from tests.support.full_suite import in_full, sample
from tests.support.media import COLOURS, GOOD, damage, joined, make_video, reorient, with_tracks

SETTINGS = WatchSettings()
SECONDS = WatchSettings(clip_ms=1_000)
SOME = ("mp4", "mkv", "webm-vp9", "variable-rate", "rotated", "audio-only", "transport-stream")
"""Kinds that the short suite reads: containers, codecs and clocks of their own."""


def read(path: Path, settings: WatchSettings = SETTINGS, first: int = 0) -> list[RawClip]:
    return list(read_clips(path, probe(path), settings, first))


def content(clip: RawClip) -> tuple[object, ...]:
    frames = [(f.time_ms, f.metrics, f.image.shape, f.image.tobytes()) for f in clip.frames]
    return clip.clip, frames, clip.samples.tobytes(), clip.gaps, clip.error


def times(clip: RawClip) -> list[int]:
    return [frame.time_ms for frame in clip.frames]


def colour_at(clip: RawClip, index: int) -> tuple[int, ...]:
    """The colour of the lower third of a frame, where nothing but the scene's colour is."""
    image = clip.frames[index].image
    rows, columns = image.shape[:2]
    return tuple(image[rows * 2 // 3 :, columns // 4 :].reshape(-1, 3).mean(axis=0).round())


@pytest.mark.parametrize("kind", sample(SOME, GOOD))
def test_every_kind_is_read_whole(kind: str, tmp_path: Path) -> None:
    path = GOOD[kind](tmp_path)
    info = probe(path)
    (clip,) = read(path)
    assert clip.error is None
    assert clip.gaps == ()
    assert 2_900 <= info.duration_ms <= 4_100
    assert len(clip.samples) == (info.duration_ms * 16 if info.has_audio else 0)
    assert info.has_video == bool(clip.frames)
    assert all(0 <= t < info.duration_ms for t in times(clip))
    assert times(clip) == sorted(set(times(clip)))
    if info.has_video:
        assert clip.frames[0].image.shape == (info.height, info.width, 3)


def test_a_frame_is_the_one_shown_at_its_instant(tmp_path: Path) -> None:
    (clip,) = read(make_video(tmp_path / "v.mp4", fps=25, b_frames=3, gop=60))
    for index, colour in enumerate([COLOURS[t // 1_000] for t in times(clip)]):
        assert colour_at(clip, index) == pytest.approx(colour, abs=16)


def encoded(codec: str, key: str = "", value: str = "", **more: str) -> dict[str, Any]:
    """A recipe's changes for a codec with options of its encoder."""
    options = more | ({key: value} if key else {})
    return {"codec": codec, "encoder": tuple(options.items()), "audio": None}


_X264, _X265 = "x264-params", "x265-params"
PREDICTED: dict[str, tuple[str, dict[str, Any]]] = {
    "b-frames": ("v.mp4", {"b_frames": 3}),
    "pyramid": ("v.mp4", encoded("libx264", _X264, "bframes=5:b-pyramid=normal", preset="medium")),
    "open": ("v.mkv", encoded("libx264", _X264, "bframes=3:open-gop=1:keyint=20", preset="fast")),
    "slices": ("v.ts", encoded("libx264", _X264, "bframes=3:slices=4:weightp=2", preset="fast")),
    "hevc": ("v.mp4", encoded("libx265", _X265, "bframes=4:log-level=none", preset="fast")),
    "hevc-layers": (
        "v.mp4",
        encoded("libx265", _X265, "bframes=7:temporal-layers=3:log-level=none", preset="fast"),
    ),
    "hevc-stream": ("v.ts", encoded("libx265", _X265, "bframes=4:log-level=none", preset="fast")),
    "vp8-layers": (
        "v.webm",
        encoded(
            "libvpx",
            "ts-parameters",
            "ts_number_layers=2:ts_target_bitrate=100,200:ts_rate_decimator=2,1:"
            "ts_periodicity=2:ts_layer_id=0,1:ts_layering_mode=2",
        ),
    ),
    "vp9": ("v.webm", encoded("libvpx-vp9", "lag-in-frames", "16", deadline="good")),
    "av1": ("v.webm", encoded("libsvtav1", preset="10")),
}
"""Codecs whose pictures are predicted from others, in ways of their own."""


def predicted(kind: str, folder: Path) -> Path:
    name, changes = PREDICTED[kind]
    try:
        return make_video(folder / name, fps=25, gop=60, **changes)
    except av.codec.codec.UnknownCodecError:
        pytest.skip(f"this PyAV has no encoder for {kind}")


@pytest.mark.parametrize("kind", sample(("pyramid", "vp9"), PREDICTED))
def test_pictures_left_undecoded_change_no_pixel(kind: str, tmp_path: Path) -> None:
    path = predicted(kind, tmp_path)
    zero = probe(path).parts[0].origin
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        assert stream.time_base is not None
        full = {
            StreamClock(stream.time_base, zero).ms(f.pts): f.to_ndarray(format="rgb24", threads=1)
            for f in container.decode(stream)
            if f.pts is not None
        }
    (clip,) = read(path)
    assert 15 <= len(clip.frames) <= 16
    for frame in clip.frames:
        np.testing.assert_array_equal(frame.image, full[frame.time_ms])


@pytest.mark.parametrize(
    "kind",
    sample(
        ("variable-rate", "open", "hevc-layers"),
        [kind for kind in dict.fromkeys([*PREDICTED, *GOOD]) if kind != "silence"],
    ),
)
def test_a_clip_is_the_same_wherever_reading_began(kind: str, tmp_path: Path) -> None:
    path = predicted(kind, tmp_path) if kind in PREDICTED else GOOD[kind](tmp_path)
    whole = [content(clip) for clip in read(path, SECONDS)]
    for first in range(1, len(whole)):
        assert [content(clip) for clip in read(path, SECONDS, first)] == whole[first:]


@pytest.mark.full
@pytest.mark.parametrize(("start", "end"), [(0.2, 0.25), (0.3, 0.6), (0.5, 0.9)])
def test_what_a_damaged_file_shows_is_what_decoding_everything_shows(
    start: float, end: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = damage(make_video(tmp_path / "v.mp4", seconds=8, b_frames=3, gop=25), start, end)
    fast = {f.time_ms: f.image for clip in read(path, SECONDS) for f in clip.frames}
    monkeypatch.setattr("perception.picture_stream.marks_unreferenced", lambda _: False)
    full = {f.time_ms: f.image for clip in read(path, SECONDS) for f in clip.frames}
    assert len(full.keys() & fast.keys()) >= 10
    for time in full.keys() & fast.keys():
        np.testing.assert_array_equal(fast[time], full[time])


def test_uneven_frames_keep_their_times_and_a_still_one_comes_once(tmp_path: Path) -> None:
    shown = (0, 40, 80, 500, 540, 1_900, 1_940, 2_000, 2_700, 2_740, 2_780, 3_400)
    (clip,) = read(make_video(tmp_path / "v.mp4", times_ms=shown))
    # At 0.2 s the frame of 80 ms is shown, at 0.6 to 1.8 s that of 540 ms, and so on.
    assert times(clip) == [0, 80, 540, 2_000, 2_780, 3_400]


def test_a_frame_that_stays_over_a_clips_start_opens_the_clip(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", times_ms=(0, 100, 2_500, 2_900), audio=None)
    clips = read(path, SECONDS)
    assert [times(clip) for clip in clips] == [[0, 100], [1_000], [2_000, 2_500]]
    assert all(clip.error is None and not clip.gaps for clip in clips)
    assert clips[1].frames[0].image.tobytes() == clips[0].frames[1].image.tobytes()


@pytest.mark.parametrize(
    ("degrees", "size"), [(90, (120, 160)), in_full((180, (160, 120))), in_full((-90, (120, 160)))]
)
def test_rotation_is_applied_to_pixels(degrees: int, size: tuple[int, int], tmp_path: Path) -> None:
    flat = read(make_video(tmp_path / "flat.mp4"))[0].frames[2].image
    path = make_video(tmp_path / "turned.mp4", rotation=degrees)
    info, turned = probe(path), read(path)[0].frames[2].image
    assert (info.width, info.height) == ((160, 120) if degrees == 180 else (120, 160))
    np.testing.assert_array_equal(turned, np.rot90(flat, degrees // 90))


def test_large_pictures_are_shrunk_and_keep_their_shape(tmp_path: Path) -> None:
    (clip,) = read(make_video(tmp_path / "v.mp4", seconds=0.4, size=(2_560, 1_440), audio=None))
    assert clip.frames[0].image.shape == (720, 1_280, 3)
    tall = make_video(tmp_path / "t.mp4", seconds=0.4, size=(1_920, 1_080), rotation=90, audio=None)
    assert read(tall)[0].frames[0].image.shape == (720, 405, 3)


@pytest.mark.parametrize("audio_start_ms", [0, 1_000])
def test_sound_lies_where_its_time_stamps_say(audio_start_ms: int, tmp_path: Path) -> None:
    (clip,) = read(make_video(tmp_path / "v.mp4", audio_start_ms=audio_start_ms))
    loud = np.flatnonzero(np.abs(clip.samples) > 0.1)
    assert loud[0] == pytest.approx(audio_start_ms * 16, abs=32)
    assert np.abs(clip.samples).max() == pytest.approx(0.3, abs=0.05)


def test_the_tone_goes_on_over_clip_borders(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4")
    joined = np.concatenate([clip.samples for clip in read(path, SECONDS)])
    whole = read(path)[0].samples
    # A stretch of sound begins on a whole sample: half a sample of 440 Hz is as far as it moves.
    np.testing.assert_allclose(joined, whole, atol=0.03)


def test_silence_and_no_sound_are_not_the_same(tmp_path: Path) -> None:
    silent = read(GOOD["silence"](tmp_path))[0]
    mute = read(GOOD["no-audio"](tmp_path))[0]
    assert len(silent.samples) == 48_000
    assert not silent.samples.any()
    assert len(mute.samples) == 0
    assert silent.error is None is mute.error


def test_a_damaged_stretch_is_a_gap_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", seconds=8, gop=25, size=(320, 240))
    damage(path, 0.45, 0.55)
    clips = read(path, SECONDS)
    gaps = [gap for clip in clips for gap in clip.gaps]
    assert gaps
    assert all(2_000 <= gap.start_ms < gap.end_ms <= 6_000 for gap in gaps)
    assert [times(clip) for clip in clips[:2]] == [
        list(range(s, s + 1_000, 200)) for s in (0, 1_000)
    ]
    assert all(clip.frames and not clip.gaps for clip in clips[6:])
    for clip in clips:
        assert not any(g.start_ms <= t < g.end_ms for g in clip.gaps for t in times(clip))


def test_a_clip_of_which_nothing_decodes_says_so(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", seconds=6, gop=25, audio=None)
    damage(path, 0.3, 0.75)
    clips = read(path, SECONDS)
    failed = [clip for clip in clips if clip.error]
    assert failed
    assert all(not clip.frames and clip.gaps == (clip.clip.span,) for clip in failed)
    assert clips[0].error is None is clips[-1].error


def test_a_lost_part_of_a_file_without_index_is_a_gap(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mkv", seconds=9, gop=10, fps=10)
    damage(path, 0.3, 0.7)
    clips = read(path, SECONDS)
    assert sum(gap.length_ms for gap in [gap for clip in clips for gap in clip.gaps]) >= 1_000
    assert clips[0].error is None is clips[-1].error
    assert clips[0].gaps == () == clips[-1].gaps


@pytest.mark.parametrize("sound", [{}, {"silent": True}, {"audio": None}])
def test_a_picture_stands_for_as_long_as_shown(tmp_path: Path, sound: dict[str, Any]) -> None:
    path = make_video(tmp_path / "v.mkv", times_ms=(0, 100, 4_000, 4_100), **sound)
    clips = read(path, SECONDS)
    assert all(clip.gaps == () and clip.error is None for clip in clips)
    assert [times(clip) for clip in clips[1:4]] == [[1_000], [2_000], [3_000]]


JOINED: dict[str, dict[str, Any]] = {
    "ts": {},
    "vob": {"format": "vob", "audio": "mp2"},
    "webm": {"codec": "libvpx", "audio": "libopus"},
    "mp4": {"codec": "libx264", "audio": "aac"},
    "flv": {"codec": "flv1", "audio": None},
    "opus": {"codec": None, "audio": "libopus"},
}
"""Formats that are joined by writing one file after the other, each with a clock of its own."""


@pytest.mark.parametrize("suffix", sample(("ts", "webm", "opus", "mp4"), JOINED))
def test_joined_recordings_are_watched_one_after_the_other(suffix: str, tmp_path: Path) -> None:
    long = make_video(tmp_path / f"a.{suffix}", seconds=3.0, **JOINED[suffix])
    quiet = {"silent": True, "scene_s": 10.0} | JOINED[suffix]
    short = make_video(tmp_path / f"b.{suffix}", seconds=2.0, **quiet)
    path = joined(tmp_path / f"all.{suffix}", long, short, long)
    info = probe(path)
    assert info.duration_ms == pytest.approx(8_000, abs=300)
    assert [part.span.start_ms for part in info.parts] == pytest.approx([0, 3_000, 5_000], abs=150)
    assert len(info.remarks) == 2
    clips = read(path, SECONDS)
    assert all(clip.error is None and not clip.gaps for clip in clips)
    if info.has_audio:
        loud = [float(np.abs(clip.samples[4_000:12_000]).mean()) > 0.02 for clip in clips[:8]]
        assert loud == [True, True, True, False, False, True, True, True]
    if info.has_video:
        assert [colour(clip) for clip in clips[:8]] == [0, 1, 2, 0, 0, 0, 1, 2]
        ((_, image),) = decode_frames(path, SECONDS, [6_500])
        assert nearest(image) == 1
    assert [content(c) for c in read(path, SECONDS, 4)] == [content(c) for c in clips[4:]]


def colour(clip: RawClip) -> int:
    """The place in COLOURS of what the middle of a clip shows."""
    return nearest(clip.frames[len(clip.frames) // 2].image)


def nearest(image: Any) -> int:
    middle = image.reshape(-1, 3).astype(float).mean(axis=0)
    return int(np.abs(np.array(COLOURS) - middle).sum(axis=1).argmin())


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_leap_of_two_hours_takes_no_time(suffix: str, tmp_path: Path) -> None:
    late = 7_200_000
    shown = (*range(0, 2_000, 200), *range(late, late + 2_000, 200))
    path = make_video(tmp_path / f"v.{suffix}", times_ms=shown, audio=None)
    clips = read(path, SECONDS)
    assert len(clips) in (4, 5)
    assert all(clip.error is None for clip in clips)
    assert [colour(clip) for clip in clips[:4]] == [0, 1, 0, 1]
    assert [content(c) for c in read(path, SECONDS, 2)] == [content(c) for c in clips[2:]]


MATRICES = {
    (1, 0, 0, 1): lambda image: image,
    (-1, 0, 0, 1): lambda image: image[:, ::-1],
    (1, 0, 0, -1): lambda image: image[::-1],
    (-1, 0, 0, -1): lambda image: image[::-1, ::-1],
    (0, 1, 1, 0): lambda image: image.transpose(1, 0, 2),
    (0, -1, -1, 0): lambda image: image[::-1, ::-1].transpose(1, 0, 2),
    (0, 1, -1, 0): lambda image: np.rot90(image, -1),
    (0, -1, 1, 0): lambda image: np.rot90(image),
}
"""The eight ways in which a stored picture can be shown, by a, b, c, d of the display matrix."""


@pytest.mark.parametrize("matrix", MATRICES)
def test_pictures_are_turned_as_told(matrix: tuple[int, int, int, int], tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4", seconds=0.6, audio=None)
    stored = read(path)[0].frames[1].image
    reorient(path, matrix)
    expected = MATRICES[matrix](stored)
    np.testing.assert_array_equal(read(path)[0].frames[1].image, expected)
    info = probe(path)
    assert (info.height, info.width) == expected.shape[:2]


@pytest.mark.parametrize(
    ("sides", "loud"),
    [((1, 1), 1), ((1, -1), 1), ((1, -0.5), 1), ((1, 0), 0.5), ((0, 1), 0.5), ((0.5, -1), 1)],
)
def test_opposite_sides_are_heard(sides: tuple[float, float], loud: float, tmp_path: Path) -> None:
    plain = read(make_video(tmp_path / "plain.mp4"))[0].samples
    (clip,) = read(make_video(tmp_path / "v.mp4", sides=sides))
    power = np.sqrt(np.square(clip.samples).mean() / np.square(plain).mean())
    assert power == pytest.approx(loud, abs=0.05)


class Loud:
    """Takes for speech what is loud."""

    def spans(self, samples: Any) -> list[tuple[int, int]]:
        return [(0, len(samples) // 16)] if np.abs(samples).mean() > 0.02 else []


@pytest.mark.parametrize(
    ("silent", "chosen"), [((True, False), 2), ((False, False), 1), ((True, True), 1)]
)
def test_track_with_speech_is_heard(silent: tuple[bool, bool], chosen: int, tmp_path: Path) -> None:
    made = [
        make_video(tmp_path / f"{n}.mp4", silent=quiet, sides=(1.0, 0.5) if n else (1.0, 1.0))
        for n, quiet in enumerate(silent)
    ]
    path = with_tracks(tmp_path / "v.mkv", *made)
    probed = probe_source(path)
    assert [track.about for track in probed.tracks] == ["sound 1, stereo", "sound 2, stereo"]
    assert speaking_track(path, probed, Loud(), SECONDS) == chosen
    for number, quiet in enumerate(silent, 1):
        (clip,) = read_clips(path, probe(path, number), SETTINGS)
        assert bool(np.abs(clip.samples).mean() > 0.02) is not quiet
    with pytest.raises(InputError, match="there is no track 3"):
        probe(path, 3)
    assert speaking_track(made[0], probe_source(made[0]), Loud(), SECONDS) is None


@pytest.mark.parametrize("transfer", ["smpte2084", "arib-std-b67"])
def test_hdr_is_shown_as_on_an_ordinary_screen(transfer: str, tmp_path: Path) -> None:
    """The colours of the picture, taken for PQ or HLG, are far brighter than they are stored."""
    colours = f"colorprim=bt2020:colormatrix=bt2020nc:transfer={transfer}"
    wide: dict[str, Any] = {"pix_fmt": "yuv420p10le", "seconds": 0.4, "audio": None}
    plain = read(make_video(tmp_path / "plain.mp4", **wide))[0].frames[0].image
    path = make_video(tmp_path / "hdr.mp4", encoder=(("x264-params", colours),), **wide)
    (clip,) = read(path)
    mapped = clip.frames[0].image
    assert mapped.shape == plain.shape
    assert np.abs(mapped.astype(int) - plain).mean() > 10
    assert mapped.max() > 200
    ((_, looked),) = decode_frames(path, SECONDS, [200])
    np.testing.assert_allclose(looked.astype(int), mapped, atol=40)


def test_a_file_that_shrinks_after_the_probe_is_an_error_and_not_a_crash(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mp4")
    info = probe(path)
    path.write_bytes(b"gone")
    with pytest.raises(MediaError, match=r"v\.mp4"):
        list(read_clips(path, info, SETTINGS))


@pytest.fixture
def measuring() -> Callable[[], list[str]]:
    """Name the threads of reading that this test began; an earlier test's may still be ending."""
    before = set(threading.enumerate())

    def began() -> list[str]:
        begun = set(threading.enumerate()) - before
        return [t.name for t in begun if t.name.startswith("measure")]

    return began


def test_no_thread_outlives_reading(tmp_path: Path, measuring: Callable[[], list[str]]) -> None:
    path = make_video(tmp_path / "v.mp4")
    read(path, SECONDS)
    assert measuring() == []
    clips = read_clips(path, probe(path), SECONDS)
    next(clips)
    assert measuring() != []
    clips.close()
    assert measuring() == []


def test_an_error_of_measuring_is_the_readers_and_ends_its_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measuring: Callable[[], list[str]]
) -> None:
    def broken(_self: object, _picture: object) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr("perception.quality.QualityMeter.measure", broken)
    with pytest.raises(MemoryError, match="no room"):
        read(make_video(tmp_path / "v.mp4"), SECONDS)
    assert measuring() == []


def test_sound_longer_than_pictures_has_clips_without_frames(tmp_path: Path) -> None:
    path = make_video(tmp_path / "v.mkv", seconds=3, times_ms=None, fps=25)
    short = tmp_path / "short.mkv"
    with av.open(str(path)) as read_from, av.open(str(short), "w") as out:
        to = {s.index: out.add_stream_from_template(s) for s in read_from.streams}
        for packet in read_from.demux():
            late = packet.stream.type == "video" and (packet.pts or 0) * packet.time_base >= 1.0
            if packet.dts is not None and not late:
                packet.stream = to[packet.stream.index]
                out.mux(packet)
    clips = read(short, SECONDS)
    assert [len(clip.frames) for clip in clips[:3]] == [5, 0, 0]
    assert all(clip.error is None for clip in clips[:3])
    assert all(not clip.gaps for clip in clips[:3])
