"""A week of captions, and questions about it, compared with the baselines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from agent.strategy import Strategy
from domain.time import TimeSpan
from evals.baseline import WORDS, Baseline, WordBaseline
from evals.dataset import EvalQuestion
from evals.datasets.egolife import read
from evals.judging import binned_iou, bins
from evals.measuring import Asked, measure, percent
from evals.running import EvalListener
from evals.statistics import figure
from evals.tables import Bar, Findings, Measured, Row
from flows.workspace import Workspace

WEEK = "egolife"
IMPORT_S, ASK_S = 15 * 60.0, 10 * 60.0
BETTER, POINTS = 1.5, 6.0
"""Bars: the factor over the baseline's top 3 and IoU, and the points of accuracy above it."""
CELL_MS = 30_000
"""The grid on which what was found is laid against what is marked."""
TOPS = (1, 3, 10)
"""How many of the retrieved moments count; temporal IoU considers the first three."""
MEASURES = {
    "right": "right option",
    **{f"top {top}": f"target in top {top}" for top in TOPS},
    "IoU": "temporal IoU",
}
"""The figures, and what the table of several data sets calls them."""


def measure_week(
    workspace: Workspace,
    folder: Path,
    listener: EvalListener,
    out: Path | None = None,
    *,
    strategies: Sequence[Strategy] = (),
    ablate: bool = False,
    limit: int | None = None,
) -> Measured:
    """Measure answers on EgoLife, beside baselines and other strategies.

    Args:
        strategies: asked as well as the profile's.
        ablate: ask these strategies also without each of their parts, and all.
        limit: only so many questions, evenly spaced.

    Raises:
        InputError: a file is missing or malformed.
    """
    dataset = read(WEEK, folder)
    every, size = dataset.questions, len(dataset.questions)
    count = min(limit or size, size)
    spaced = tuple(every[index * size // count] for index in range(count))
    less = [one.name for strategy in strategies if ablate for one in strategy.ablations()]
    return measure(
        workspace,
        replace(dataset, questions=spaced),
        listener,
        partial(of_week, embedding=partial(listener.importing, "baseline")),
        out,
        strategies=[*(one.name for one in strategies), *less],
    )


def of_week(asked: Asked, embedding: Callable[[int, int], None]) -> Findings:
    """Measure options and found moments of all arms and of both baselines.

    ``embedding``: receives how many clips of how many are embedded for the baseline.
    """
    store, text = asked.workspace.store, asked.workspace.toolbox.text
    main, name = asked.ran.main, f"{text.name}, one vector a clip"
    questions = [one.question for one in asked.answers if one.answer]
    scores = {
        arm: [
            scored(one.question, one.right, [found.span for found in one.answer.retrieved])
            for one in answers
            if one.answer
        ]
        for arm, answers in asked.arms.items()
    }
    for video in dict.fromkeys(one.result.slot.video for one in asked.answers):
        ways: dict[str, Baseline | WordBaseline] = {
            name: Baseline.of(store, video, text, embedding),
            WORDS: WordBaseline.of(store, video),
        }
        for arm, way in ways.items():
            made = [way.answer(one.question, one.options, one.as_of_ms) for one in questions]
            scores[arm] = [
                scored(one, plain.option == one.answer, plain.retrieved)
                for one, plain in zip(questions, made, strict=True)
            ]
    beside = week_row(name, scores.get(name, ()))
    total = sum(one.result.took.seconds for answers in asked.arms.values() for one in answers)

    def row(label: str, arm: str) -> Row:
        took = [one.result.took.seconds for one in asked.arms.get(arm, ())]
        made = week_row(label, scores.get(arm, ()))
        times = {f"{key}, times": _times(made, beside, key) for key in ("top 3", "IoU")}
        # Arms are asked beside each other: the time is shared out by what answers took.
        seconds = asked.ran.asking_s * sum(took) / total if took and total else None
        more = times | {"seconds": seconds, "slowest": max(took, default=None)}
        return replace(made, figures={**made.figures, **more})

    ours, imported_s = row("Homer", main), asked.ran.imported_s
    of_type = (
        week_row(
            f"{kind}: {who}",
            [score for one, score in zip(questions, scores[arm], strict=True) if kind in one.types],
        )
        for kind in sorted({kind for one in questions for kind in one.types})
        for who, arm in (("Homer", main), ("baseline", name))
    )
    took = f"the import took {imported_s:.0f} s" if imported_s is not None else ""
    return Findings(
        tables={
            "answered by": (
                *(row(one, one) for one in (name, WORDS) if one in scores),
                ours,
                *(row(arm, arm) for arm in asked.arms if arm != main),
            ),
            "by type": tuple(of_type),
        },
        measures=tuple(
            measured
            for key, label in MEASURES.items()
            for measured in asked.measure(label, ours.figures[key], beside.figures[key])
        ),
        bars=tuple(week_bars(ours, beside, len(asked.answers), imported_s)),
        notes=(took or "the week was in memory already",),
    )


def scored(question: EvalQuestion, right: bool, found: Sequence[TimeSpan]) -> dict[str, float]:
    """Score an answer that retrieved these spans, best first: shares in [0, 1]."""
    target = bins(question.spans, CELL_MS)
    hits = [bool(bins([span], CELL_MS) & target) for span in found]
    return {
        "right": right,
        **{f"top {top}": any(hits[:top]) for top in TOPS},
        "IoU": binned_iou(found[:3], question.spans, CELL_MS),
    }


def week_row(name: str, scores: Sequence[Mapping[str, float]]) -> Row:
    figures = {key: figure(one[key] for one in scores) for key in MEASURES}
    return Row(name, len(scores), figures)


def _times(made: Row, plain: Row, name: str) -> float:
    """Return how many times the baseline's share is reached; 0 where that is nothing."""
    return percent(made, name) / beside if (beside := percent(plain, name)) else 0.0


def week_bars(ours: Row, plain: Row, questions: int, imported_s: float | None) -> Iterator[Bar]:
    """Yield the bars to reach; the import counts only if this run made it."""
    if imported_s is not None:
        yield Bar("import, seconds", imported_s, IMPORT_S, most=True)
    took = ours.figures["seconds"]
    yield Bar("asking, seconds", took if isinstance(took, float) else 0.0, ASK_S, most=True)
    yield Bar("questions answered", ours.questions, questions)
    yield Bar("target in top 3, times the baseline", _times(ours, plain, "top 3"), BETTER)
    yield Bar("temporal IoU, times the baseline", _times(ours, plain, "IoU"), BETTER)
    above = percent(ours, "right") - percent(plain, "right")
    yield Bar("accuracy, points above", above, POINTS)
