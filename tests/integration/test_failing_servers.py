"""What is stored, said and done next when a model's server fails: nothing is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.failing_servers import BROKEN, CLIPS, SERVERS, play
from models import retries
from store.database import Store
from tests.support.media import make_video

ALL = [*range(CLIPS)]
KEPT = rf"^clip {BROKEN} failed: its words and pictures are kept, without lines of the model: .*"


@pytest.mark.parametrize(
    ("name", "waited_s", "said", "again"),
    [
        ("429, Retry-After", 40, "^$", []),
        ("429, RetryInfo", 68, "^$", []),
        ("429, no wish", 15.5, "^$", []),
        ("500 at one clip", 63.5, KEPT + "500", [BROKEN]),
        ("drops", 3.5, "^$", []),
        ("out ten minutes", 603.5, r"is away \(no connection\).* again, after 9 minutes$", []),
        ("out for hours", 3_663.5, r"503.*stopped: .* for an hour .* same command", [1, 2, 3]),
        ("wrong key", 0, "^stopped: openai:atlas does not let us in .*: check the key$", ALL),
        ("wrong model", 0, "^stopped: openai:atlas at .* is not there .*: check model", ALL),
        ("no credit", 0, "^stopped: openai:atlas is not paid for", ALL),
        ("refusal", 0, KEPT + "refuses: .* content filter", []),
        ("cut replies", 0, KEPT + "cut off", [BROKEN]),
        ("prose", 0, "^$", []),
        ("two turns refused", 0, "^$", []),
    ],
)
def test_nothing_is_lost_with_a_failing_server(
    name: str,
    waited_s: float,
    said: str,
    again: list[int],
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retries, "JITTER_S", 0.0)
    film = make_video(tmp_path / "film.mp4", seconds=2.0 * CLIPS, audio=None)
    (server,) = (one for one in SERVERS if one.name == name)
    first, second = play(server, store, film)
    assert first.waited_s == pytest.approx(waited_s)
    assert re.search(said, " ".join(first.said))
    assert first.again == again
    stored = [n for n in ALL if first.words[n]]
    assert {*stored, *again} == {*ALL}
    assert all(bool(first.seen[n]) != bool(first.written[n]) for n in stored)
    if "stopped" not in said:
        assert first.in_segments == [n for n in stored if n not in again]
    refused = [BROKEN] if name == "refusal" else []
    assert second.words == [1] * CLIPS
    assert [n for n in ALL if second.seen[n]] == refused == [*second.left]
    assert [n for n in ALL if not second.written[n]] == refused
    assert (second.again, second.said, second.in_segments) == ([], [], ALL)
