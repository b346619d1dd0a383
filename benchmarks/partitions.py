"""Ten million memories in halves, partitioned by video: what Postgres makes of them.

    python -m benchmarks.partitions [--memories 10000000] [--videos 400] [--partitions 50]

Homer's tables are not partitioned. This tells what it would bring: a table of memories' columns is
filled and asked, and the plans are printed. It takes a gigabyte of disk a million memories, half a
minute a million, and is no part of `make bench`.

* The lines of a clip, and of a video, are read as searching reads them, beside a table that has
  nothing but that video: what the other millions cost.
* The ten nearest lines of a video are found by the database, beside numpy over the same rows.
* An approximate index (HNSW) is built over one partition, and asked for the ten nearest; its recall
  is that beside the exact ten.
* A video is deleted by rows, and a partition is dropped.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from psycopg.sql import SQL, Composed, Identifier, Literal

from benchmarks.grown import Vectors, unit
from benchmarks.lines import RUNS, Line, Taken, costs, in_turn, milliseconds
from benchmarks.search import NEAREST, nearest
from store.driver import HALFVEC, libpq_url, pack_halfvec, parse_url
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.big_library import LINES

SIZE, CENTRES = 384, 2_000
NOISE = 0.6
COLUMNS = "id, video_id, clip, start_ms, end_ms, kind, text, source, embedding"
_TYPES = ["int8", "text", "int4", "int8", "int8", "text", "text", "text", HALFVEC]
_READ = (
    "SELECT id, clip, start_ms, end_ms, kind, text, source, halfvec_send(embedding) FROM {} "
    "WHERE video_id = %s AND clip > %s AND clip <= %s ORDER BY clip, start_ms, id"
)
_NEAR = "SELECT id FROM {} WHERE video_id = %s ORDER BY embedding <=> %s::halfvec LIMIT 10"

_HELD = "SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('grown') AS {}"
_INDEX = "CREATE INDEX ON {} USING hnsw (embedding halfvec_cosine_ops)"


@dataclass(frozen=True)
class Grown:
    """A table of so many ``memories`` of ``videos`` in ``partitions``."""

    connection: psycopg.Connection[Any]
    memories: int
    videos: int
    partitions: int

    @property
    def of_video(self) -> int:
        """Memories of a video."""
        return self.memories // self.videos

    def name(self, video: int) -> str:
        """Return a video's id."""
        return f"{video:016x}"

    def vectors(self, video: int) -> Vectors:
        """Return those of a video's lines, shape (of_video, SIZE), in clusters as sentences lie."""
        dice = np.random.default_rng(video)
        own = _centres()[dice.integers(0, CENTRES, self.of_video)]
        noise = dice.standard_normal((self.of_video, SIZE), dtype=np.float32)
        return unit(own + np.float32(NOISE / np.sqrt(SIZE)) * noise)


@cache
def _centres() -> Vectors:
    return unit(np.random.default_rng(1).standard_normal((CENTRES, SIZE), dtype=np.float32))


def main() -> None:
    """Fill, ask, and print lines and plans."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--memories", type=int, default=10_000_000)
    parser.add_argument("--videos", type=int, default=400)
    parser.add_argument("--partitions", type=int, default=50)
    output = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = EmbeddedPostgres(Home(Path(folder)).make())
        try:
            with psycopg.connect(
                libpq_url(parse_url(server.start())), autocommit=True
            ) as connection:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
                grown = Grown(connection, output.memories, output.videos, output.partitions)
                for line in lines(grown):
                    print(
                        f"{line.what}: {_told(line.ours)}; {line.against}: "
                        f"{_told(line.reference)}; {line.ratio:.2f}x",
                        flush=True,
                    )
        finally:
            server.stop()


def _told(taken: Taken) -> str:
    return f"{taken.median:,.1f} {taken.unit} (±{100 * taken.spread:.0f} %)"


def lines(grown: Grown) -> Iterator[Line]:
    """Yield all lines; plans are printed between them."""
    yield _filled(grown)
    video = grown.videos // 2
    _alone(grown, video)
    yield from _read(grown, video)
    yield _nearest(grown, video)
    yield from _indexed(grown, video)
    yield _dropped(grown, video)


def _filled(grown: Grown) -> Line:
    make = grown.connection.execute
    make(
        "CREATE TABLE grown (id int8, video_id text, clip int4, start_ms int8, end_ms int8, "
        f"kind text, text text, source text, embedding halfvec({SIZE})) "
        "PARTITION BY HASH (video_id)"
    )
    for number in range(grown.partitions):
        make(
            SQL(
                "CREATE TABLE {} PARTITION OF grown FOR VALUES WITH (MODULUS {}, REMAINDER {})"
            ).format(Identifier(f"grown_{number}"), Literal(grown.partitions), Literal(number))
        )
    started = time.perf_counter()
    for video in range(grown.videos):
        _fill(grown, "grown", video)
        if video % max(1, grown.videos // 20) == 0:
            left = (time.perf_counter() - started) / (video + 1) * (grown.videos - video - 1)
            print(f"{video + 1} of {grown.videos} videos, {left / 60:.0f} min left", flush=True)
    wrote = time.perf_counter() - started
    make("CREATE INDEX ON grown (video_id, clip)")
    make("ANALYZE grown")
    (bytes_held,) = _asked(grown, _HELD, "parts", ())
    rate = grown.memories / wrote
    print(f"filled at {rate:,.0f} memories a second", flush=True)
    held, bare = (
        Taken((float(bytes_held) / 1e9,), "GB"),
        Taken((2e-9 * grown.memories * SIZE,), "GB"),
    )
    what = f"{grown.memories:,} memories in {grown.partitions} partitions"
    return costs(what, held, bare, "their numbers alone", size=grown.memories)


def _fill(grown: Grown, table: str, video: int) -> None:
    first = video * grown.of_video
    into = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(Identifier(table), SQL(COLUMNS))
    with grown.connection.cursor() as cursor, cursor.copy(into) as copy:
        copy.set_types(_TYPES)
        for n, vector in enumerate(grown.vectors(video)):
            clip, at = n // LINES, n * 3_750
            said = f"<face_{n % 7}> carries the lamp of clip {clip} into the hall."
            copy.write_row(
                (
                    first + n,
                    grown.name(video),
                    clip,
                    at,
                    at + 3_000,
                    "episodic",
                    said,
                    "seen",
                    pack_halfvec(vector),
                )
            )


def _alone(grown: Grown, video: int) -> None:
    """Return a table with one video only."""
    grown.connection.execute("CREATE TABLE alone (LIKE grown)")
    _fill(grown, "alone", video)
    grown.connection.execute("CREATE INDEX ON alone (video_id, clip)")
    grown.connection.execute("ANALYZE alone")


def _read(grown: Grown, video: int) -> Iterator[Line]:
    clips = grown.of_video // LINES
    for what, after, until in (("a clip's lines", 10, 11), ("a video's lines", -1, clips)):
        values = (grown.name(video), after, until)
        _plan(grown, what, _READ, values)
        ours, alone = in_turn(
            partial(_asked, grown, _READ, "grown", values),
            partial(_asked, grown, _READ, "alone", values),
        )
        against = "of a table with that video alone"
        yield costs(f"{what} of {grown.memories:,}", ours, alone, against, size=grown.memories)


def _nearest(grown: Grown, video: int) -> Line:
    rows, values = grown.vectors(video), _sought(grown, video, 5)
    _plan(grown, "the ten nearest of a video", _NEAR, values)
    query = rows[5].copy()
    ours, numpy = in_turn(
        partial(_asked, grown, _NEAR, "grown", values),
        partial(nearest, rows, query),
    )
    what = f"the ten nearest of a video of {grown.memories:,}, by the database"
    return costs(what, ours, numpy, "numpy over the video's rows", size=grown.memories)


def _indexed(grown: Grown, video: int) -> Iterator[Line]:
    """Yield an approximate index of the partition that a video is in."""
    partition = _partition_of(grown, video)
    (count,) = _asked(grown, "SELECT count(*) FROM {}", partition, ())
    near = _NEAR.replace("WHERE video_id = %s ", "")
    questions = [_sought(grown, video, 100 * n)[1] for n in range(20)]
    exact = [_asked(grown, near, partition, (one,)) for one in questions]
    grown.connection.execute("SET maintenance_work_mem = '2GB'")
    built = milliseconds(lambda: grown.connection.execute(_over(_INDEX, partition)))
    whole = built * grown.memories / count / 3.6e6
    print(
        f"an approximate index of {count:,} rows: {built / 1000:,.0f} s to build; "
        f"of all partitions one after the other: {whole:,.1f} hours",
        flush=True,
    )
    grown.connection.execute("SET hnsw.ef_search = 200")
    _plan(grown, "the ten nearest of a partition", near, (questions[0],), partition)
    found = [_asked(grown, near, partition, (one,)) for one in questions]
    shares = [len(set(a) & set(b)) / NEAREST for a, b in zip(found, exact, strict=True)]
    recall, sure = Taken((float(np.mean(shares)),), "of 1"), Taken((1.0,), "of 1")
    yield costs(f"recall of an approximate index over {count:,}", recall, sure, "exact")
    times = [
        milliseconds(partial(_asked, grown, near, partition, (one,))) for one in questions[:RUNS]
    ]
    rows = np.concatenate([grown.vectors(n) for n in range(max(1, count // grown.of_video))])
    query = rows[5].copy()
    plain = [milliseconds(partial(nearest, rows, query)) for _ in range(RUNS)]
    what = f"the ten nearest of {count:,} by an approximate index"
    yield costs(what, Taken(tuple(times)), Taken(tuple(plain)), "numpy over as many rows")


def _dropped(grown: Grown, video: int) -> Line:
    gone = (video + 1) % grown.videos
    partition = _partition_of(grown, gone)
    delete = SQL("DELETE FROM grown WHERE video_id = {}").format(Literal(grown.name(gone)))
    rows = milliseconds(lambda: grown.connection.execute(delete))
    whole = milliseconds(lambda: grown.connection.execute(_over("DROP TABLE {}", partition)))
    ours, other = Taken((whole,)), Taken((rows,))
    return costs("dropping a partition", ours, other, "deleting one video's rows")


def _sought(grown: Grown, video: int, line: int) -> tuple[str, str]:
    numbers = ",".join(f"{x:.5f}" for x in grown.vectors(video)[line % grown.of_video])
    return grown.name(video), f"[{numbers}]"


def _asked(grown: Grown, query: str, table: str, values: tuple[Any, ...]) -> list[Any]:
    with grown.connection.cursor(binary=True) as cursor:
        return [row[0] for row in cursor.execute(_over(query, table), values).fetchall()]


def _over(query: str, table: str) -> Composed:
    return SQL(query).format(Identifier(table))


def _plan(
    grown: Grown, what: str, query: str, values: tuple[Any, ...], table: str = "grown"
) -> None:
    output = SQL("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) ") + _over(query, table)
    print(f"-- {what}", flush=True)
    for (row,) in grown.connection.execute(output, values).fetchall():
        print(f"   {str(row)[:150]}", flush=True)


def _partition_of(grown: Grown, video: int) -> str:
    query = "SELECT tableoid::regclass::text FROM {} WHERE video_id = %s LIMIT 1"
    return str(_asked(grown, query, "grown", (grown.name(video),))[0])


if __name__ == "__main__":
    main()
