"""An evaluation in a process of its own, which is killed at a named point."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evals import judging
from evals.running import EvaluationSteps
from graphs.runner import Runner
from memory.write_clip import ClipWriter
from store.database import open_store
from store.home import Home
from store.queries import evaluations
from tests.support.caption_evaluations import evaluate, houses
from tests.support.cli_process import Served
from tests.support.forked_processes import forked
from tests.support.obedient_model import LlmToolbox

POINTS: dict[str, tuple[Any, str, bool]] = {
    "while captions are imported": (ClipWriter, "remember_many", True),
    "before the questions are planned": (evaluations, "plan_slots", False),
    "before a question is on record": (evaluations, "set_trajectory", False),
    "after a question is on record": (Runner, "begin", True),
    "in the midst of a question": (Runner, "_append", True),
    "after an answer": (Runner, "finish", True),
    "after the judge has spoken": (judging, "judge_words", True),
    "before a verdict": (evaluations, "set_verdict", False),
    "after a verdict": (EvaluationSteps, "_put", True),
    "after learning": (EvaluationSteps, "learned", False),
}
"""What is patched, and whether the kill comes after it."""


def killed_evaluating(
    url: str, root: Path, base_url: str, folder: Path, point: str, at: int
) -> int:
    """Evaluate in a process that is killed when ``point`` is reached for the ``at``-th time.

    Returns:
        Its exit code: -9 where it was killed, 0 where the point was not reached so often.
    """
    child = forked(_evaluate, url, root, base_url, folder, point, at)
    child.join(200)
    code = child.exitcode
    assert code is not None, "the child hangs"
    return code


def _evaluate(url: str, root: Path, base_url: str, folder: Path, point: str, at: int) -> None:
    owner, name, after = POINTS[point]
    setattr(owner, name, deadly(getattr(owner, name), after, at))
    toolbox = LlmToolbox(Served(base_url))  # type: ignore[arg-type]
    with open_store(Home(root), url) as store:
        evaluate(store, houses(folder), toolbox, workers=1)


def deadly(real: Callable[..., Any], after: bool, at: int) -> Callable[..., Any]:
    """``real``, which kills the process before or after it is called for the ``at``-th time."""
    reached = 0

    def call(*args: Any, **more: Any) -> Any:
        nonlocal reached
        reached += 1
        if reached == at and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        made = real(*args, **more)
        if reached == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return made

    return call
