"""Exports training data: a folder that is complete, or not there."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import NonNegativeInt, ValidationError

from agent.strategy import Strategy
from domain.audit import Deed
from domain.base import Frozen
from domain.errors import InputError
from evals.training.examples import prompt_rows, recorded_examples
from evals.training.recipe import Recipe
from store.files import make_private, open_private
from store.queries.audit import record_deed

if TYPE_CHECKING:
    from store.database import Store

PROMPTS, TRAJECTORIES, MANIFEST = "prompts.jsonl", "trajectories.jsonl", "training.json"
FORMAT = 1


class TrainingManifest(Frozen):
    """What an export holds. ``open_questions``: trajectories whose answer code cannot judge.

    ``strategy`` is whose tools the environment has, with the profile's models. ``grpo`` are the
    arguments of TRL's ``GRPOConfig``.
    """

    format: int = FORMAT
    strategy: str
    profile: str
    trajectories: NonNegativeInt
    right: NonNegativeInt
    prompts: NonNegativeInt
    open_questions: NonNegativeInt
    recipe: Recipe = Recipe()
    grpo: dict[str, Any]


def export_training(
    store: Store, strategy: Strategy, profile: str, folder: Path, limit: int | None = None
) -> TrainingManifest:
    """Write the judged trajectories of a strategy, and the prompts among them, into a new folder.

    Args:
        store: holds the trajectories; what was deleted or forgotten is not in it any more.
        strategy: whose trajectories.
        profile: the models of the environment.
        folder: must not exist, or be an earlier export, which is replaced.
        limit: at most so many trajectories, from the oldest on.

    Raises:
        InputError: nothing is judged, or the folder is something else or cannot be written.
    """
    _check_target(folder)
    recipe = Recipe()
    with store.begin(snapshot=True) as session:
        examples = list(recorded_examples(session, strategy.name, recipe, limit))
    if not examples:
        raise InputError(
            f"no answer of {strategy.name} was judged yet: 'homer eval run' judges those to a data "
            "set, 'homer skills judge ID right' one of your own"
        )
    prompts = prompt_rows(examples)
    manifest = TrainingManifest(
        strategy=strategy.name,
        profile=profile,
        trajectories=len(examples),
        right=sum(example.reward > 0 for example in examples),
        prompts=len(prompts),
        open_questions=sum(not example.run.question.options for example in examples),
        recipe=recipe,
        grpo=recipe.grpo_arguments(),
    )
    files = {
        PROMPTS: _lines(prompts),
        TRAJECTORIES: _lines(example.row for example in examples),
        MANIFEST: manifest.model_dump_json(indent=1) + "\n",
    }
    _write(folder, files)
    with store.begin() as session:
        record_deed(session, Deed.EXPORTED)
    return manifest


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _check_target(folder: Path) -> None:
    """Check that nothing but an earlier export would be replaced.

    Raises:
        InputError: something else is there.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{folder} is not a folder: name a new one")
    if folder.is_dir():
        names = {path.name for path in folder.iterdir()}
        if names and (MANIFEST not in names or names - {PROMPTS, TRAJECTORIES, MANIFEST}):
            raise InputError(f"{folder} has other files in it: name a new folder")


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files beside the folder, then put them in its place."""
    whole, mark = folder.absolute(), secrets.token_hex(4)
    fresh, earlier = (whole.with_name(f".{whole.name}-{mark}-{which}") for which in ("new", "old"))
    try:
        make_private(fresh)
        for name, text in files.items():
            with open_private(fresh / name) as file:
                file.write(text)
        if whole.is_dir():
            whole.rename(earlier)
        _put_in_place(fresh, whole, earlier)
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(earlier, ignore_errors=True)


def _put_in_place(fresh: Path, whole: Path, earlier: Path) -> None:
    """Rename the new folder; where that fails, the earlier one is put back.

    Raises:
        OSError: it failed.
    """
    try:
        fresh.rename(whole)
    except OSError:
        if earlier.is_dir():
            earlier.rename(whole)
        raise


def read_manifest(folder: Path) -> TrainingManifest:
    """Read what an export holds.

    Raises:
        InputError: the folder is not an export of this format, or was altered.
    """
    try:
        manifest = TrainingManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(f"{folder} is no export of 'homer train export'") from error
    if manifest.format != FORMAT:
        raise InputError(f"{folder} is an export of format {manifest.format}: export it anew")
    if odd := sorted(manifest.grpo.keys() - manifest.recipe.grpo_arguments().keys()):
        # Others could have the trainer upload the model, for example.
        raise InputError(f"{folder} sets {odd[0]}, which no export does: give it to the trainer")
    return manifest


def read_prompts(folder: Path) -> list[dict[str, Any]]:
    """Read the prompts of an export.

    Raises:
        InputError: they cannot be read.
    """
    try:
        text = (folder / PROMPTS).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / PROMPTS} cannot be read: {error}") from error
