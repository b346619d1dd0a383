"""What three worlds would need, worked out from the figures of a run.

    python -m benchmarks search ingest workers writes --json run.json
    python -m benchmarks.growing run.json [MORE.json ...] [--model openai:gpt-5.4-mini]

A city's cameras, a year of a person's life, a film archive: rows, bytes, how fast they are searched
and watched, and what models cost. It is arithmetic: rows, bytes, machines and money grow with the
hours, by what the run measured at its largest size; searches are told as they were measured there.
What is assumed and not measured are the options.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from models.specs import price_list

CLIPS_HOUR, LINES_CLIP, KEYFRAMES_HOUR = 120, 8, 360


@dataclass(frozen=True)
class Scene:
    """A world: hours of video that are kept, and those that come in each hour."""

    name: str
    hours: float
    incoming: float


SCENES = (
    Scene("a city: 1000 cameras, a month kept", 1000 * 24 * 30, 1000),
    Scene("a year of a person's life, 16 hours a day", 16 * 365, 16 / 24),
    Scene("a film archive: 10000 films in a year", 10_000 * 1.8, 10_000 * 1.8 / 8_760),
)


@dataclass(frozen=True)
class Figures:
    """What was measured: bytes of a memory, ms of searches, times real time.

    ``video_ms`` is a search over one video, ``all_ms`` one over all ``lines`` of the largest
    library that was measured, ``first_ms`` the first one of a process. Where a run has them too:
    how many times as much two workers of a machine watch as one, the ms that Postgres takes to
    write what one clip may have at most, and bytes and seconds that a memory adds to the search
    index.
    """

    memory_bytes: float
    video_ms: float
    all_ms: float
    lines: float
    first_ms: float
    real_time: float
    two_workers: float | None = None
    write_ms: float | None = None
    index_bytes: float | None = None
    index_s: float | None = None


@dataclass(frozen=True)
class Use:
    """Tokens in and out of the model of a clip and of a question, and its price a million."""

    clip: tuple[int, int]
    question: tuple[int, int]
    price: tuple[float, float]

    def usd(self, tokens: tuple[int, int]) -> float:
        """Return what tokens cost."""
        return sum(n * p for n, p in zip(tokens, self.price, strict=True)) / 1e6


def figures(lines: Sequence[dict[str, Any]]) -> Figures:
    """Return what the lines of one or more runs say, at the largest size that each was measured at.

    Raises:
        KeyError: a line that is needed was not measured.
    """
    memory = _largest(lines, "memories on disk")
    search = _largest(lines, "event over all videos (")
    video = _largest(lines, "event over one video")
    first = _largest(lines, "the first search of a process")
    watched = _largest(lines, "watching 720p, speech and all")
    two = [line["ratio"] for line in lines if line["what"].startswith("eight clips by two workers")]
    written = [_median(line) for line in lines if line["what"].endswith("memories of a clip")]
    index = _at_most(lines, "search index on disk")
    built = _at_most(lines, "building the search index")
    return Figures(
        memory_bytes=_bytes(memory),
        video_ms=_median(video),
        all_ms=_median(search),
        lines=search["size"],
        first_ms=_median(first),
        real_time=watched["ratio"],
        two_workers=max(two, default=None),
        write_ms=max(written, default=None),
        index_bytes=_bytes(index) if index else None,
        index_s=_median(built) / built["size"] if built else None,
    )


def _largest(lines: Sequence[dict[str, Any]], start: str) -> dict[str, Any]:
    found = _at_most(lines, start)
    if found is None:
        raise KeyError(start)
    return found


def _at_most(lines: Sequence[dict[str, Any]], start: str) -> dict[str, Any] | None:
    found = (line for line in lines if line["what"].startswith(start))
    return max(found, key=lambda line: line["size"] or 0, default=None)


def _bytes(line: dict[str, Any]) -> float:
    """Of one memory."""
    return 1e6 * _median(line) / float(line["size"])


def _median(line: dict[str, Any]) -> float:
    values = sorted(line["ours"]["values"])
    return float(values[len(values) // 2])


def needs(scene: Scene, known: Figures, use: Use) -> Iterator[tuple[str, str]]:
    """Yield what a world needs, a row each."""
    memories = scene.hours * CLIPS_HOUR * LINES_CLIP
    yield "hours kept", f"{scene.hours:,.0f}"
    yield "memories", f"{memories:,.0f}"
    yield "keyframes, at most", f"{scene.hours * KEYFRAMES_HOUR:,.0f}"
    yield "memories on disk", f"{memories * known.memory_bytes / 1e9:,.1f} GB"
    if known.index_bytes is not None:
        yield "the search index on disk", f"{memories * known.index_bytes / 1e9:,.1f} GB"
    if known.index_s is not None:
        yield "building the search index", f"{memories * known.index_s / 3600:,.1f} h"
    yield "a search over one video", f"{known.video_ms:,.0f} ms"
    yield f"a search over {known.lines:,.0f} lines", f"{known.all_ms:,.0f} ms"
    yield "the first search of a process", f"{known.first_ms:,.0f} ms"
    yield "machines that watch", f"{math.ceil(scene.incoming / known.real_time):,}"
    if known.two_workers is not None:
        pace = known.real_time * max(1.0, known.two_workers)
        yield "the same, two workers each", f"{math.ceil(scene.incoming / pace):,}"
    if known.write_ms is not None:
        busy = scene.incoming * CLIPS_HOUR * known.write_ms / 3_600_000
        yield "share of one connection's time that writing takes", f"{busy:.2%}"
    yield "model, all clips once", f"{scene.hours * CLIPS_HOUR * use.usd(use.clip):,.0f} USD"
    yield "model, a thousand questions", f"{1000 * use.usd(use.question):,.0f} USD"


def table(known: Figures, use: Use) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    columns = [dict(needs(scene, known, use)) for scene in SCENES]
    yield "| | " + " | ".join(scene.name for scene in SCENES) + " |"
    yield "|---|" + "---|" * len(SCENES)
    for row in columns[0]:
        yield f"| {row} | " + " | ".join(column[row] for column in columns) + " |"


def main() -> int:
    """Print the table; 2 where a figure that is needed was not measured."""
    parser = argparse.ArgumentParser(description="What larger worlds would need.")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN.json")
    parser.add_argument("--model", default="openai:gpt-5.4-mini", choices=sorted(price_list()))
    parser.add_argument("--clip-tokens", type=int, nargs=2, default=(3_000, 600))
    parser.add_argument("--question-tokens", type=int, nargs=2, default=(60_000, 4_000))
    reported = parser.parse_args()
    price = price_list()[reported.model]
    use = Use(reported.clip_tokens, reported.question_tokens, (price.input, price.output))
    lines = [line for run in reported.runs for line in json.loads(run.read_text())["lines"]]
    try:
        known = figures(lines)
    except KeyError as missing:
        print(
            f"not measured in these runs: {missing}; run `search ingest workers writes`",
            file=sys.stderr,
        )
        return 2
    print(
        f"with {reported.model}; {reported.clip_tokens} tokens a clip, "
        f"{reported.question_tokens} a question"
    )
    print("\n".join(table(known, use)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
