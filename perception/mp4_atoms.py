"""The boxes at the top level of an MP4 or MOV file: is all of it there?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from domain.errors import MediaError

_FAMILY = frozenset({b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"})


def refuse_cut_short(path: Path) -> None:
    """Raise a MediaError for an MP4 or MOV file that ends before its own index says it does.

    Files written in fragments (live recordings) are whole up to any fragment, and pass.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        boxes = list(_boxes(file, size))
    if not boxes or boxes[0][0] not in _FAMILY:
        return
    names = {name for name, _ in boxes}
    cut = boxes[-1][1] > size
    if b"moof" not in names and (cut or b"moov" not in names):
        raise MediaError(f"{path}: the file is cut short; copy or download it again")


def _boxes(file: BinaryIO, size: int) -> Iterator[tuple[bytes, int]]:
    """Name and end offset of each box, up to the first that is not one."""
    offset = 0
    while offset + 8 <= size:
        file.seek(offset)
        header = file.read(16)
        length, name = int.from_bytes(header[:4]), header[4:8]
        if length == 1:
            length = int.from_bytes(header[8:16])
        elif length == 0:
            length = size - offset
        if length < 8 or not name.isascii():
            return
        offset += length
        yield name, offset
