"""Steps that run at once, also those that are started."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

from domain.errors import HomerError
from flows.executors import Executor, Step


def _at_once(step: Step, arguments: Mapping[str, object]) -> Future[object]:
    future: Future[object] = Future()
    try:
        future.set_result(step.call(**arguments))
    except HomerError as error:
        future.set_exception(error)
    return future


EAGER = Executor(lambda step, arguments: step.call(**arguments), _at_once)
"""Makes plain calls, and tries nothing again."""
