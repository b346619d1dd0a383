"""``homer eval captions``: what strategies built, beside captions that were written elsewhere."""

from __future__ import annotations

import dataclasses
from typing import Any

import typer

from cli.console import say, say_json, say_table
from cli.options import Json, MoreStrategies, OneVideo, split_names
from domain.errors import InputError
from evals.caption_scales import Agreement, ScaleAgreement, compare_scales
from flows.workspace import open_workspace
from strategies.registry import all_strategies, find_strategy

SHARES = ("precision %", "recall %", "F1 %")


def captions(video: OneVideo, strategy: MoreStrategies = None, json: Json = False) -> None:
    """Compare what strategies built of a video with a reference of captions at its scales.

    The reference is imported with 'homer import VIDEO --captions FILE --scale'. Without --strategy
    it is compared with all strategies that build a memory.

    \b
    Example:
      homer eval captions egolife
    """
    named = [find_strategy(name) for name in split_names(strategy or [])]
    chosen = named or [one for one in all_strategies() if one.builder is not None]
    found: dict[str, list[ScaleAgreement]] = {}
    skipped: list[InputError] = []
    with open_workspace() as workspace:
        parser = workspace.toolbox.sentences
        for one in chosen:
            try:
                found[one.name] = compare_scales(workspace.store, video, one, parser)
            except InputError as error:
                skipped.append(error)
    if skipped and (named or not found):
        raise skipped[0]
    if json:
        rows = {name: list(map(_as_json, scales)) for name, scales in found.items()}
        return say_json(rows)
    heads = [f"{kind}: {share}" for kind in ("entities", "triples") for share in SHARES]
    for name, scales in found.items():
        say_table((f"{name}, scale", "captions", *heads), map(_row, scales))
        say()
    return None


def _row(scale: ScaleAgreement) -> tuple[object, ...]:
    figures = (*_shares(scale.entities), *_shares(scale.triples))
    return (scale.scale, scale.captions, *(f"{figure:.1f}" for figure in figures))


def _shares(agreement: Agreement) -> tuple[float, float, float]:
    return agreement.precision, agreement.recall, agreement.f1


def _as_json(scale: ScaleAgreement) -> dict[str, Any]:
    row = dataclasses.asdict(scale)
    row["entities"]["f1"], row["triples"]["f1"] = scale.entities.f1, scale.triples.f1
    return row


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(no_args_is_help=True)(captions)
