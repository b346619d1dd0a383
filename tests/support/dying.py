"""Asking in a process of its own, which is killed at a named point."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from domain.asking import Question
from graphs import saver
from graphs.asker import Asker
from graphs.saver import BoundarySaver
from memory.retrieval.retrievers import Retrievers
from models.endpoint import Endpoint
from nodes.calls import Calls
from store.database import open_store
from store.home import Home
from tests.support.obedient import LlmToolbox

POINTS: dict[str, tuple[Any, str, bool]] = {
    "before a call is sent": (Endpoint, "send", False),
    "in a call": (Endpoint, "send", True),
    "when a call is recorded": (Calls, "_store_call", True),
    "before a search": (Retrievers, "search", False),
    "after a search": (Retrievers, "search", True),
    "before events are written": (saver, "append_events", False),
    "after events are written": (saver, "append_events", True),
    "before a checkpoint": (BoundarySaver, "put", False),
    "after a checkpoint": (BoundarySaver, "put", True),
}
"""What is patched, and whether the kill comes after it.

In a call, the model has answered and nobody has written it down yet.
"""


class Served:
    """The address of a server, as a toolbox needs it."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url


def killed_asking(
    url: str, root: Path, base_url: str, question: Question, point: str, at: int
) -> int:
    """Ask in a process that is killed when ``point`` is reached for the ``at``-th time.

    Returns:
        Its exit code: -9 where it was killed, 0 where the point was not reached so often.
    """
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    arguments = (url, root, base_url, question, point, at)
    child = context.Process(target=_ask, args=arguments)
    child.start()
    child.join(120)
    code = child.exitcode
    assert code is not None, "the child hangs"
    return code


def _ask(url: str, root: Path, base_url: str, question: Question, point: str, at: int) -> None:
    owner, name, after = POINTS[point]
    setattr(owner, name, deadly(getattr(owner, name), after, at))
    toolbox = LlmToolbox(Served(base_url))  # type: ignore[arg-type]
    with open_store(Home(root), url) as store, Asker(store, toolbox) as asker:
        asker.ask(question)


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
