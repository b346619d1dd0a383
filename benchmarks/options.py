"""``python -m benchmarks.options DATASET FOLDER``: what each signal adds to choosing an option.

The videos must be in memory (``homer eval run DATASET FOLDER`` imports them). Each signal of the
ranking is switched off in turn; "general" is the ranking without
``retrieval.heuristics.options``. The last column is the mean and the spread over
``FOLDS`` parts of the videos; the last line takes the way that is best in the other parts.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase

import numpy as np

from domain.settings import DoingSettings, SearchSettings
from evals.baseline import Closest
from evals.dataset import EvalQuestion
from evals.datasets import read
from flows.workspace import Workspace, open_workspace
from retrieval.preparation import SearchPreparation
from retrieval.query_context import QueryContext
from retrieval.ranking import relevance
from store.queries.clips import memory_view
from store.queries.videos import find_video
from tests.support.ranking import shares

NAME = 28
FOLDS = 10


def variants() -> dict[str, SearchSettings]:
    """Return the whole, and each signal switched off, by what is switched off."""
    whole = SearchSettings()
    made = {"nothing": whole}
    for name in DoingSettings.model_fields:
        changed = whole.doings.model_copy(update={name: 0.0})
        made[f"doings: {name}"] = whole.model_copy(update={"doings": changed})
    for name in SearchSettings.model_fields:
        if name != "doings":
            off: object = () if isinstance(getattr(whole, name), tuple) else 0.0
            made[name] = whole.model_copy(update={name: off})
    return made


def chosen(context: QueryContext, weights: SearchSettings, *, general: bool) -> str:
    """Return the letter of the option that is chosen; A where nothing is in view."""
    vectors = replace(context.vectors, actions=None) if general else context.vectors
    if not context.lines.cell_count:
        return "A"
    field = relevance(context.candidates, context.question, vectors, weights)
    return ascii_uppercase[int(shares(field).argmax())]


def answers(workspace: Workspace, asked: Sequence[EvalQuestion]) -> Iterator[dict[str, bool]]:
    """Of each question which ways of answering are right, by name."""
    search = SearchPreparation(workspace.store, workspace.toolbox, workspace.settings.search)
    plain = Closest(workspace.store, workspace.toolbox.text)
    ids: dict[str, str] = {}
    for one in asked:
        with workspace.store.begin() as session:
            if one.video not in ids:
                ids[one.video] = find_video(session, one.video).id
            view = memory_view(session, [ids[one.video]], one.as_of_ms)
        context = search.context(view, one.question, one.options)
        ways = {"baseline": plain.option(one, ids[one.video])}
        ways["general"] = chosen(context, SearchSettings(), general=True)
        described = context.vectors.actions is not None
        for name, weights in variants().items():
            if name.startswith("doings") or not described or name == "nothing":
                ways[f"without {name}"] = chosen(context, weights, general=False)
            else:
                ways[f"general without {name}"] = chosen(context, weights, general=True)
        yield {name: letter == one.answer for name, letter in ways.items()}


def table(asked: Sequence[EvalQuestion], right: Sequence[Mapping[str, bool]]) -> Iterator[str]:
    """Yield a line for each way: the share right by first type, and of all."""
    kinds = sorted({one.types[0] for one in asked if one.types})
    yield (
        f"{'percent right':{NAME}}"
        + "".join(f"{kind:>14}" for kind in (*kinds, "all"))
        + f"{'parts':>14}"
    )
    folds = by_fold(asked, right)
    for name in dict.fromkeys(name for one in right for name in one):
        both = zip(asked, right, strict=True)
        output = [(question.types[:1], one[name]) for question, one in both if name in one]
        shares = (
            [hit for types, hit in output if kind in ("all", *types)] for kind in (*kinds, "all")
        )
        means = "".join(f"{100 * np.mean(one or [False]):14.1f}" for one in shares)
        yield f"{name:{NAME}}{means}{_spread(folds.get(name, ()))}"
    held = [
        folds[max(folds, key=lambda name: np.mean(np.delete(folds[name], part)))][part]
        for part in range(FOLDS)
    ]
    yield f"{'best in the other parts':{NAME}}{'':{14 * (len(kinds) + 1)}}{_spread(held)}"


def by_fold(
    asked: Sequence[EvalQuestion], right: Sequence[Mapping[str, bool]]
) -> dict[str, list[float]]:
    """Return the share right in each part of the videos, by the way of answering them all."""
    videos = sorted({one.video for one in asked})
    parts = [videos.index(one.video) % FOLDS for one in asked]
    ways = [name for name in right[0] if all(name in one for one in right)]
    return {
        name: [
            float(np.mean([one[name] for one, at in zip(right, parts, strict=True) if at == part]))
            for part in range(FOLDS)
        ]
        for name in ways
    }


def _spread(shares: Sequence[float]) -> str:
    return f"{100 * np.mean(shares):14.1f} ±{100 * np.std(shares):4.1f}" if len(shares) else ""


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profile", default="local")
    given = parser.parse_args()
    every = read(given.dataset, given.folder).questions
    asked = [one for one in every if one.options and one.answer]
    with open_workspace(given.profile) as workspace:
        right = list(answers(workspace, asked))
    print(*table(asked, right), sep="\n")


if __name__ == "__main__":
    main()
