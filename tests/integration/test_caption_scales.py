"""Captions at several scales as a reference for what strategies build."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cli.main import app
from domain.errors import InputError, NotFound
from evals.caption_scales import compare_scales
from memory.import_captions import REFERENCE, import_reference, read_scaled_captions
from store.database import Store
from store.home import Home
from store.queries.builds import read_built
from store.queries.videos import find_video
from strategies.registry import find_strategy
from tests.support.asking import PARTY, remember_party
from tests.support.caption_evaluations import build_all
from tests.support.remembered import PARSER

STRATEGY = find_strategy("worldmm")


def written(scale_s: int, start: float, end: float, text: str) -> dict[str, Any]:
    return {"scale_s": scale_s, "day": 1, "start": start, "end": end, "text": text}


SAME = [
    written(30, 0, 30, "Ann opens the wooden gate of the garden. The sky is clear."),
    written(30, 30, 60, "Bob carries a blue cup of coffee to the table."),
]
OTHER = [*SAME, written(180, 0, 150, "Bob carries a blue cup of coffee to the table.")]


def stored(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "scales.json.gz"
    with gzip.open(path, "wt") as file:
        json.dump({"source": "us", "captions": rows}, file)
    return path


@pytest.fixture
def party(store: Store) -> Store:
    """The party, of which the strategy has built its memory."""
    remember_party(store)
    build_all(store, PARTY, STRATEGY)
    return store


def refer(store: Store, path: Path) -> None:
    with store.begin() as session:
        video = find_video(session, PARTY)
    import_reference(store, video, read_scaled_captions(path))


def test_the_same_captions_agree_wholly_and_others_in_part(party: Store, tmp_path: Path) -> None:
    refer(party, stored(tmp_path, OTHER))
    fine, coarse = compare_scales(party, PARTY, STRATEGY, PARSER)
    assert (fine.scale, fine.captions, fine.entities.f1, fine.triples.f1) == ("30 s", 2, 100, 100)
    assert (coarse.scale, coarse.captions) == ("180 s", 1)
    assert coarse.triples.recall == 100 > coarse.triples.precision > 0
    assert coarse.entities.recall == 100 > coarse.entities.precision > 0


def test_an_import_takes_the_place_of_the_one_before(party: Store, tmp_path: Path) -> None:
    refer(party, stored(tmp_path, OTHER))
    refer(party, stored(tmp_path, SAME))
    with party.begin() as session:
        nodes = read_built(session, PARTY, REFERENCE).nodes
    assert [(one.level, one.number, one.from_clip) for one in nodes] == [
        ("30 s", 0, 0),
        ("30 s", 1, 1),
    ]


def test_without_reference_or_memory_it_is_said_what_to_run(store: Store, tmp_path: Path) -> None:
    remember_party(store)
    with pytest.raises(InputError, match=r"homer import VIDEO --captions FILE --scale"):
        compare_scales(store, PARTY, STRATEGY, PARSER)
    refer(store, stored(tmp_path, SAME))
    with pytest.raises(InputError, match="homer build VIDEO --memory"):
        compare_scales(store, PARTY, STRATEGY, PARSER)
    late = stored(tmp_path, [written(30, 9_000, 9_030, "Ann sings.")])
    with pytest.raises(InputError, match=r"after .* ends"):
        refer(store, late)


@pytest.mark.parametrize(
    ("more", "output"),
    [
        ({"scale_s": None}, "caption 2: scale_s"),
        ({"scale_s": "30"}, "caption 2: scale_s"),
        ({"scale_s": 0}, "caption 2: scale_s"),
        ({"scale_s": True}, "caption 2: scale_s"),
        ({"start": "x"}, "caption 2: start"),
        ({"end": 1}, "caption 2: it ends"),
        ({"text": " "}, "caption 2: text is empty"),
    ],
)
def test_a_wrong_caption_is_named(tmp_path: Path, more: dict[str, Any], output: str) -> None:
    with pytest.raises(InputError, match=output):
        read_scaled_captions(stored(tmp_path, [SAME[0], {**SAME[1], **more}]))


def test_json_lines_are_read_and_other_files_refused(tmp_path: Path) -> None:
    lines = tmp_path / "scales.jsonl"
    lines.write_text("\n".join(map(json.dumps, reversed(SAME))) + "\n\n")
    assert [one.span.start_ms for one in read_scaled_captions(lines)] == [0, 30_000]
    lines.write_text(json.dumps(SAME[0]) + "\n{")
    with pytest.raises(InputError, match="line 2"):
        read_scaled_captions(lines)
    for text, output in (("{}", "no list"), ("[]", "nothing to import"), ("x", "no JSON")):
        other = tmp_path / "scales.json"
        other.write_text(text)
        with pytest.raises(InputError, match=output):
            read_scaled_captions(other)
    with pytest.raises(NotFound):
        read_scaled_captions(tmp_path / "gone.json")


def test_captions_of_several_videos_are_not_stored_beside_one(tmp_path: Path) -> None:
    one = [{**row, "video": "talk"} for row in SAME]
    assert len(read_scaled_captions(stored(tmp_path, [*one, SAME[0]]))) == 3
    with pytest.raises(InputError, match=r"names 2 videos \(talk, walk\): give each a file"):
        read_scaled_captions(stored(tmp_path, [*one, {**SAME[0], "video": "walk"}]))


def test_the_commands_import_and_compare(
    party: Store, home: Home, database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def homer(*arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments))

    monkeypatch.setenv("HOMER_DATABASE_URL", database)
    path = str(stored(tmp_path, SAME))
    done = homer("import", PARTY, "--captions", path, "--scale")
    assert done.exit_code == 0, done.output
    assert "a reference of 2 captions (2 of 30 s)" in done.stdout
    shown = homer("eval", "captions", PARTY)
    assert shown.exit_code == 0, shown.output
    assert "100.0" in shown.stdout
    reported = json.loads(homer("eval", "captions", PARTY, "--json").stdout)
    assert (reported[0]["strategy"], reported[0]["triples"]["f1"]) == (STRATEGY.name, 100)
    assert homer("eval", "captions", PARTY, "--strategy", "plain-rag").exit_code == 2
    assert homer("import", "--captions", path, "--scale").exit_code == 2
