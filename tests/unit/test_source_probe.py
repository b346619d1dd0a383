"""Files and live sources: what is taken, what is refused in a line, and what they are called."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError, MediaError
from domain.settings import WatchSettings
from perception.containers import reject_truncated
from perception.live import live_source
from perception.source import clips_of, find_media, probe, video_id
from tests.support.media import BAD, GOOD, make_video

fractions = st.fractions(min_value=-100, max_value=100, max_denominator=90_000)
WORD = st.text("abcdefghijklmnopqrstuvwxyzXYZ0123456789", min_size=4, max_size=12)


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_refused_in_one_line_that_names_the_file(kind: str, tmp_path: Path) -> None:
    path, before = BAD[kind](tmp_path), sorted(tmp_path.rglob("*"))
    with pytest.raises(MediaError) as refusal:
        probe(path)
    message = str(refusal.value)
    assert refusal.value.exit_code == 2
    assert path.name in message
    assert "\n" not in message
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("empty", "is empty"),
        ("missing", "no such file"),
        ("truncated", "cut short"),
        ("truncated-after-index", "cut short"),
        ("text", "not a video or audio file"),
        ("zero-length", "no video or audio"),
    ],
)
def test_the_reason_is_reported(kind: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=reason):
        probe(BAD[kind](tmp_path))


def test_a_folder_is_not_a_source(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match="not a file"):
        probe(tmp_path)


@pytest.mark.parametrize("kind", GOOD)
def test_good_input_is_described(kind: str, tmp_path: Path) -> None:
    info = probe(GOOD[kind](tmp_path))
    assert info.duration_ms == pytest.approx(3_300, abs=800)
    assert info.has_video == (kind != "audio-only")
    assert info.has_audio == (kind != "no-audio")
    turned = kind == "rotated"
    assert (info.width, info.height) == (
        (0, 0) if kind == "audio-only" else (120, 160) if turned else (160, 120)
    )


def test_cover_art_is_not_a_video(tmp_path: Path) -> None:
    import av
    import numpy as np

    song = tmp_path / "song.mp3"
    with av.open(str(song), "w") as out:
        sound = out.add_stream("libmp3lame", rate=44_100)
        cover = out.add_stream("png", rate=1)
        cover.width = cover.height = 32
        cover.pix_fmt = "rgb24"
        cover.disposition = av.stream.Disposition.attached_pic
        frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
        out.mux(cover.encode(frame))
        out.mux(cover.encode(None))
        noise = np.random.default_rng(0).normal(0, 0.1, (2, 1_152 * 40)).astype(np.float32)
        wave = av.AudioFrame.from_ndarray(noise, format="fltp", layout="stereo")
        wave.sample_rate = 44_100
        out.mux(sound.encode(wave))
        out.mux(sound.encode(None))
    info = probe(song)
    assert (info.has_video, info.has_audio) == (False, True)


@pytest.mark.parametrize(
    "name",
    ["a b.mp4", "ünïcode 東京.mp4", "-dash.mp4", "concat:a|b.mp4", "50%d.mp4", "data:x,y.mp4"],
)
def test_a_name_is_only_a_name(name: str, tmp_path: Path) -> None:
    assert probe(make_video(tmp_path / "v.mp4", seconds=1).rename(tmp_path / name)).has_video


def test_an_id_is_of_the_content_and_not_of_the_name(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"x" * 3_000_000)
    other.write_bytes(b"x" * 3_000_000)
    assert video_id(one) == video_id(other) == hashlib.sha256(b"x" * 3_000_000).hexdigest()[:16]
    other.write_bytes(b"x" * 2_999_999 + b"y")
    assert video_id(one) != video_id(other)


@pytest.mark.parametrize("content", [b"", None])
def test_nothing_has_no_id(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "v.mp4"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MediaError):
        video_id(path)


@given(st.integers(0, 10**8), st.integers(100, 10**6))
def test_clips_cover_the_video_once(duration_ms: int, clip_ms: int) -> None:
    clips = clips_of(min(duration_ms, clip_ms * 300), WatchSettings(clip_ms=clip_ms))
    edges = [0] + [clip.span.end_ms for clip in clips]
    assert [clip.index for clip in clips] == list(range(len(clips)))
    assert [clip.span.start_ms for clip in clips] == edges[:-1]
    assert edges[-1] == min(duration_ms, clip_ms * 300)
    assert all(clip.span.length_ms == clip_ms for clip in clips[:-1])
    assert all(0 < clip.span.length_ms <= clip_ms for clip in clips)


def test_folders_are_searched_at_any_depth_in_order(tmp_path: Path) -> None:
    given = ("b.MP4", "a.mkv", "deep/er/c.webm", "notes.txt", "._a.mkv", "deep/d.flac", "e.srt")
    for name in given:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.mp4").mkdir()
    # What would be watched if it was named is found whatever it is called.
    make_video(tmp_path / "v.mp4").rename(tmp_path / "clip.LRV")
    make_video(tmp_path / "v.ts", codec=None).rename(tmp_path / "deep" / "news.trp")
    (tmp_path / "odd.bin").write_bytes(bytes(range(256)) * 40)
    make_video(tmp_path / "w.mkv").rename(tmp_path / "w.mkv.part")
    warned = list[str]()
    found = find_media([tmp_path], warned.append)
    names = [str(path.relative_to(tmp_path)) for path in found]
    assert names == ["a.mkv", "b.MP4", "clip.LRV", "deep/d.flac", "deep/er/c.webm", "deep/news.trp"]
    assert warned == [
        f"{tmp_path}: left out, being no video or audio: notes.txt, odd.bin, w.mkv.part"
    ]


def test_a_named_file_is_taken_whatever_its_suffix_and_once(tmp_path: Path) -> None:
    odd, plain = tmp_path / "odd.xyz", tmp_path / "plain.mp4"
    odd.write_bytes(b"x")
    plain.write_bytes(b"x")
    assert find_media([odd, plain, tmp_path, plain]) == [odd, plain]


@pytest.mark.parametrize("what", ["missing", "empty"])
def test_a_folder_without_media_and_a_missing_one_are_reported(what: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(MediaError, match=what if what == "missing" else "no video or audio"):
        find_media([tmp_path / what])


@pytest.mark.parametrize("hours", [2, 240])
def test_a_leap_of_the_clock_takes_no_time_and_is_told(tmp_path: Path, hours: int) -> None:
    late = hours * 3_600_000
    times = (0, 200, 400, late, late + 200, late + 400)
    info = probe(make_video(tmp_path / "odd.mkv", times_ms=times, audio=None))
    assert info.duration_ms < 2_000
    assert [part.span.start_ms for part in info.parts] == [0, pytest.approx(440, abs=100)]
    assert "begins anew at 00:00" in info.remarks[0]


def box(name: bytes, body: bytes = b"", *, large: bool = False) -> bytes:
    """A box with its length before it: of 32 bits, or where ``large`` of 64."""
    if large:
        return (1).to_bytes(4) + name + (16 + len(body)).to_bytes(8) + body
    return (8 + len(body)).to_bytes(4) + name + body


FTYP, MOOV, MDAT = box(b"ftyp", b"isom"), box(b"moov", b"index"), box(b"mdat", b"pictures" * 4)
BOXES = st.builds(
    box,
    st.sampled_from([b"free", b"skip", b"wide", b"mdat", b"uuid"]),
    st.binary(max_size=40),
    large=st.booleans(),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("boxes") / "film.mp4"


def is_refused(place: Path, data: bytes) -> bool:
    place.write_bytes(data)
    try:
        reject_truncated(place)
    except MediaError:
        return True
    return False


def test_it_is_reported_by_the_file_and_with_what_to_do(place: Path) -> None:
    place.write_bytes(FTYP)
    with pytest.raises(MediaError, match=r"film\.mp4: .* copy or download it again"):
        reject_truncated(place)


@pytest.mark.parametrize(
    ("boxes", "refused"),
    [
        ((FTYP, MOOV, MDAT), False),
        ((FTYP, MDAT, MOOV), False),
        ((FTYP, box(b"free"), MOOV, box(b"mdat", b"pictures", large=True)), False),
        ((box(b"wide"), MDAT, MOOV), False),
        ((box(b"mdat", b"old QuickTime"), MOOV), False),
        ((FTYP, MOOV, (0).to_bytes(4) + b"mdat" + b"to the end of the file"), False),
        ((FTYP, MDAT), True),
        ((FTYP,), True),
        ((FTYP, MOOV, MDAT[:-1]), True),
        ((FTYP, MOOV, box(b"mdat", b"pictures", large=True)[:-1]), True),
        ((FTYP, (0).to_bytes(4) + b"mdat" + b"no index anywhere"), True),
    ],
)
def test_only_a_torn_one_is_refused(place: Path, boxes: tuple[bytes, ...], refused: bool) -> None:
    assert is_refused(place, b"".join(boxes)) is refused


@pytest.mark.parametrize("cut", [0, 1, 9])
def test_a_live_recording_is_whole_up_to_any_fragment(place: Path, cut: int) -> None:
    fragments = box(b"moof", b"part") + box(b"mdat", b"pictures of it")
    data = FTYP + MOOV + fragments + fragments
    assert not is_refused(place, data[: len(data) - cut])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"short",
        b"RIFF\x24\x08\x00\x00WAVEfmt and so on",
        b"\x1a\x45\xdf\xa3 matroska has no boxes",
        b"OggS and what follows it",
        (7).to_bytes(4) + b"ftyp" + b"a box shorter than its own head",
        (99).to_bytes(4) + b"\xff\xfe\x00\x01" + b"no name",
    ],
)
def test_what_is_no_mp4_is_none_of_its_business(place: Path, data: bytes) -> None:
    assert not is_refused(place, data)


@given(st.lists(BOXES, max_size=6))
def test_any_boxes_may_lie_around_the_index(place: Path, boxes: list[bytes]) -> None:
    assert not is_refused(place, b"".join([FTYP, *boxes, MOOV]))


@given(st.lists(BOXES, max_size=4), st.data())
def test_anywhere_cut_it_is_refused(place: Path, boxes: list[bytes], data: st.DataObject) -> None:
    whole = b"".join([FTYP, *boxes, MOOV, MDAT])
    # A cut between index and pictures leaves a file that is whole as far as it says.
    borders = {len(whole) - len(MDAT) + n for n in range(8)}
    at = data.draw(st.integers(len(FTYP), len(whole) - 1).filter(lambda n: n not in borders))
    assert is_refused(place, whole[:at])


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_crash(place: Path, data: bytes) -> None:
    is_refused(place, data)
    is_refused(place, FTYP + data)


@given(user=WORD, secret=WORD, host=WORD, key=WORD)
def test_neither_password_nor_key_is_reported(user: str, secret: str, host: str, key: str) -> None:
    text = (
        f"rtsp://{user}U1:{secret}S2@{host}.local:554/cam/1?channel=2&{key}={secret}S2#{secret}S2"
    )
    source = live_source(text)
    output = f"{source!r} {source.name} {source.label} {source.id}"
    assert f"{secret}S2" not in output
    assert f"{user}U1" not in output
    assert source.address == text
    assert source.name.startswith(f"rtsp://{host.lower()}.local:554/cam/1?channel=2&")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("rtsp://u:p@door/live", "rtsp://door/live"),
        ("https://h:8443/x.m3u8?token=abcdef", "https://h:8443/x.m3u8?token=..."),
        ("rtsp://h/c?channel=1&subtype=0", "rtsp://h/c?channel=1&subtype=0"),
        ("rtsp://h/c?pin=123&channel=7", "rtsp://h/c?pin=...&channel=7"),
        ("rtsp://u:p@[fe80::1]:554/c", "rtsp://[fe80::1]:554/c"),
        ("http://u%40x:p%3Aq@h/c", "http://h/c"),
        ("rtsp://u:p@q@h/c", "rtsp://h/c"),
    ],
)
def test_names_of_addresses(address: str, name: str) -> None:
    assert live_source(address).name == name


def test_a_new_password_is_the_same_camera_and_another_channel_is_not() -> None:
    first = live_source("rtsp://u:old@h/c?channel=1").id
    assert live_source("rtsp://u:new@h/c?channel=1").id == first
    assert live_source("rtsp://u:new@h/c?channel=2").id != first
    assert live_source("rtsp://u:new@h/c?channel=1", "door").id != first


@pytest.mark.parametrize(
    "address",
    [
        *("ftp://u:hunter2@h/x", "file:///etc/passwd?hunter2", "concat://hunter2", "rtsp://"),
        *("rtsp://u:hunter2@[broken/x", "rtsp://u:hunter2@h:99999999/x"),
        "subfile,,start,0,end,9,,://hunter2",
    ],
)
def test_other_addresses_are_refused_in_a_line_that_does_not_repeat_them(address: str) -> None:
    with pytest.raises(InputError, match="rtsp://, http:// or https://") as refused:
        live_source(address)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("secret", ["12/hunter2", "12?hunter2", "12#hunter2"])
def test_a_password_that_looks_like_a_path_is_refused_and_not_told(secret: str) -> None:
    with pytest.raises(InputError, match="%2F") as refused:
        live_source(f"rtsp://u:{secret}@h/c")
    assert "hunter2" not in str(refused.value)


def test_pipes_cameras_and_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    assert live_source(str(tmp_path / "p")).kind == "pipe"
    assert live_source("/dev/null").kind == "camera"
    assert live_source("-", "talk").kind == "pipe"
    with pytest.raises(InputError, match="--title"):
        live_source("-")
    with pytest.raises(InputError, match="no such device or pipe"):
        live_source(str(tmp_path / "none"))
    (tmp_path / "talk.mp4").write_bytes(b"x")
    with pytest.raises(InputError, match="homer ingest"):
        live_source(str(tmp_path / "talk.mp4"))


def test_an_address_that_is_given_as_a_file_is_not_repeated() -> None:
    with pytest.raises(MediaError, match="homer watch") as refused:
        find_media([Path("rtsp://me:hunter2@door/live")])
    assert "hunter2" not in str(refused.value)
