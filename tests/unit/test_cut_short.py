"""An MP4 file that ends before its own index says so is refused, and no other file is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import MediaError
from perception.containers import reject_truncated


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
        ((FTYP, MDAT, MOOV[:-1]), True),
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
