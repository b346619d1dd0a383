"""TRL's GRPO trainer over an export: needs the extra ``train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from domain.errors import InputError
from evals.training.export import environment_of, read_manifest, read_prompts, right_answers
from graphs.context_factory import StrategyTools
from strategies.registry import find_strategy

if TYPE_CHECKING:
    from flows.workspace import Workspace


def make_trainer(
    workspace: Workspace, folder: Path, model: Any, out: Path, tokenizer: Any = None, **more: Any
) -> GRPOTrainer:
    """Return a trainer of the prompts of an export, with the tools of its strategy.

    Args:
        workspace: the library that the export is of, and the models of the tools.
        folder: the export.
        model: a causal language model, or its name. Its chat template must take tools.
        out: a folder for checkpoints.
        tokenizer: the model's; None: by the model's name.
        more: arguments of ``GRPOConfig`` other than those of the recipe.

    Raises:
        InputError: the folder is not an export, or has fewer prompts than one step takes.
        NotFound: there is no such strategy any more.
    """
    manifest = read_manifest(folder)
    prompts, needed = read_prompts(folder), manifest.recipe.batch // manifest.recipe.group
    if len(prompts) < needed:
        raise InputError(
            f"{len(prompts)} prompts are too few: one step takes {needed}; judge more answers"
        )
    strategy = find_strategy(manifest.strategy)
    tools = StrategyTools(workspace.store, workspace.toolbox)
    arguments: dict[str, Any] = {"output_dir": str(out), "report_to": [], **manifest.grpo, **more}
    return GRPOTrainer(
        model=model,
        reward_funcs=right_answers,
        args=GRPOConfig(**arguments),
        train_dataset=Dataset.from_list(prompts),
        processing_class=tokenizer,
        environment_factory=environment_of(strategy, workspace.profile, tools),
    )
