"""The one place that makes ONNX Runtime sessions: quiet, with few threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from domain.errors import WeightsMissing
from models.devices import CPU, execution_providers, limit_arenas

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

T = TypeVar("T")
R = TypeVar("R")

THREADS = 2
ERRORS_ONLY = 3

_allowed = threading.local()


def allow_threads(threads: int) -> None:
    """Limit the threads of models that this thread makes from now on."""
    _allowed.threads = threads


def threads_allowed() -> int:
    """Return how many threads a model made now may run in."""
    return min(THREADS, getattr(_allowed, "threads", THREADS))


def open_session(
    path: Path | bytes,
    threads: int = THREADS,
    *,
    repair: bool = False,
    arena: bool = True,
    device: str = CPU,
) -> InferenceSession:
    """Open a session on a model; it may be used from several threads at once.

    Args:
        path: a checked ``.onnx`` file (see ``models.weights.verified_folder``), or a model itself.
        threads: threads of one run, where this thread is allowed as many.
        repair: correct first what ONNX Runtime does not accept in the file.
        arena: keep the memory of a run for the next one; without it a model whose inputs are of
            ever new sizes holds less.
        device: see ``models.devices``.

    Raises:
        WeightsMissing: the file cannot be read as a model.
        SetupError: the device is not there.
    """
    limit_arenas()
    import onnxruntime as ort
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    options = ort.SessionOptions()
    options.intra_op_num_threads = min(threads, threads_allowed())
    options.inter_op_num_threads = 1
    options.log_severity_level = ERRORS_ONLY
    options.enable_cpu_mem_arena = arena
    # Waiting threads sleep instead of spinning: other stages want the same cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        model = _read(path, repair)
        return ort.InferenceSession(model, options, providers=execution_providers(device))
    except (
        # What is raised for a file that is no model; these share no base class.
        RuntimeError,
        state.Fail,
        state.InvalidGraph,
        state.InvalidProtobuf,
        state.NotImplemented,
    ) as error:
        name = path if isinstance(path, Path) else "a model"
        raise WeightsMissing(f"{name} cannot be loaded as a model: {error}") from error


def _read(model: Path | bytes, repair: bool) -> str | bytes:
    if isinstance(model, bytes):
        return model
    return _repaired(model) if repair else str(model)


def _repaired(path: Path) -> bytes:
    """Correct a checked model that ONNX Runtime reads more strictly than others do.

    The arithmetic stays the same. Inputs that no node reads and that are not stored either are
    dropped (left over from quantising), and so are block sizes on values that have one scale for
    all.
    """
    # Slow to import, and few models are repaired.
    import onnx

    model = onnx.load_model(str(path))
    graph = model.graph
    read = {name for node in graph.node for name in node.input}
    stored = {value.name for value in graph.initializer}
    for value in list(graph.input):
        if value.name not in read or value.name in stored:
            graph.input.remove(value)
    single = {value.name for value in model.graph.initializer if list(value.dims) in ([], [1])}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[1] in single:
            for attribute in [item for item in node.attribute if item.name == "block_size"]:
                node.attribute.remove(attribute)
    return bytes(model.SerializeToString())


def map_in_threads(run: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Map ``run`` over the items, in order, on a few threads; a single item costs no thread.

    For many small runs this uses the cores better than threads inside of each run do.
    """
    threads = threads_allowed()
    if min(len(items), threads) < 2:
        return [run(item) for item in items]
    with _pool(threads) as pool:
        return list(pool.map(run, items))


def run_both(one: Callable[[], T], other: Callable[[], R]) -> tuple[T, R]:
    """Run two functions and return both results; the first in a thread of its own if allowed.

    That thread has this one's context variables and limit of threads.
    """
    threads = threads_allowed()
    if threads < 2:
        return one(), other()
    with _pool(threads) as pool:
        begun = pool.submit(copy_context().run, one)
        done = other()
        return begun.result(), done


def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, "onnx", allow_threads, (threads,))
