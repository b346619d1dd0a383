"""What partitions bring is measured on a real server, here at a size of no weight."""

from __future__ import annotations

import psycopg
import pytest

from benchmarks.partitions import Grown, lines
from store.database import Store


def test_a_table_in_partitions_is_filled(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    with psycopg.connect(store.psycopg_url, autocommit=True) as connection:
        grown = Grown(connection, memories=960, videos=6, partitions=3)
        found = {line.what: line for line in lines(grown)}
    assert len(found) == 7
    assert next(one for what, one in found.items() if what.startswith("recall")).ratio >= 0.9
    assert all(line.ours.median > 0 for line in found.values())
    plans = capsys.readouterr().out
    # A video's lines are read from the partition that it is in, by the index on video and clip.
    assert "_video_id_clip_idx on grown_" in plans
    assert "Append" not in plans
    assert "0 min left" in plans
