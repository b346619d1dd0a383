"""Captions, skills and files of ``--keep-undo`` that somebody made to fill up or get in."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.errors import InputError
from domain.settings import ImportLimits
from memory.captions import read_captions, read_cues
from skills.library import MOST_BYTES, read_skills
from store.archive import read_forgotten_file
from store.queries.encoders import LibraryEncoders
from tests.support.altered_exports import written

HEAD = {
    "keepsake": 1,
    "video": "a" * 16,
    "library": "b" * 32,
    "at": "2026-01-01T00:00:00+00:00",
} | {"encoders": ["words", None]}
SMALL = ImportLimits(captions_mb=1, line_mb=1, blob_mb=1)


def keepsake(out: Path, *rows: tuple[str, object], **blobs: bytes) -> Path:
    lines = [json.dumps(HEAD), *(json.dumps([name, json.dumps(row)]) for name, row in rows)]
    members = {"rows.jsonl": "\n".join(lines).encode()}
    return written(out, members | {f"blobs/{sha}": data for sha, data in blobs.items()})


def test_a_keepsake_brings_no_other_table_and_no_other_image(tmp_path: Path) -> None:
    for name in ("library", "audit", "taken", "search_indexes", "pg_authid", "checkpoints.x"):
        with pytest.raises(InputError, match="file of --keep-undo"):
            read_forgotten_file(keepsake(tmp_path / "table", (name, {"id": 1})))
    with pytest.raises(InputError, match="file of --keep-undo"):
        read_forgotten_file(keepsake(tmp_path / "image", **{"0" * 64: b"another one"}))
    assert read_forgotten_file(keepsake(tmp_path / "good", ("memories", {"id": 1}))).rows


def test_a_keepsake_has_limits(tmp_path: Path) -> None:
    long = keepsake(tmp_path / "long", ("memories", {"text": "x" * 2_000_000}))
    with pytest.raises(InputError, match=r"imports\.line_mb is 1 "):
        read_forgotten_file(long, SMALL)
    bomb = written(tmp_path / "bomb", {"rows.jsonl": bytes(100_000_000)})
    with pytest.raises(InputError, match=r"imports\.ratio is 200"):
        read_forgotten_file(bomb)


@pytest.mark.parametrize("read", [read_captions, read_cues])
@pytest.mark.parametrize("name", ["a.srt", "a.srt.gz"])
def test_swelling_captions_refused(tmp_path: Path, read: Callable[..., object], name: str) -> None:
    file, data = tmp_path / name, b"1\n00:00:01,000 --> 00:00:02,000\n" + b"a" * 30_000_000
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    tracemalloc.start()
    with pytest.raises(InputError, match=r"imports\.captions_mb is 1 "):
        read(file, limits=SMALL)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_skills_that_are_too_large_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "skills.toml"
    file.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(InputError, match="no more than 4 MB"):
        read_skills(file)


@pytest.mark.parametrize("names", [None, [], ["x"], [1, None], ["x" * 301, None], [None, ["x"]]])
def test_only_names_are_taken_for_those_of_encoders(names: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        LibraryEncoders.parse(names)
