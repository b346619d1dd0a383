"""32 questions at once, beside the same questions one after another.

The model answers over the protocol of OpenAI after half a second, whoever else asks; it does what
the prompts say without a thought, so that both ways make the same calls.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.lines import Line, Taken, faster, milliseconds
from graphs.concurrent import BatchQuestion, run_batch
from store.database import Store, open_store
from store.embedded import EmbeddedPostgres
from store.home import Home
from tests.support.asking import PARTY, remember_party
from tests.support.obedient_model import LlmToolbox, obedient
from tests.support.openai_server import Answer, OpenAIServer

AT_ONCE = 32
ALONE = 2
"""Questions asked one after another; what they take is that of so many times more."""
DELAY_S = 0.5
BAR = 10.0


def lines() -> Iterator[Line]:
    """One line: how many times as fast 32 questions are answered together."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).make()
        try:
            with open_store(home) as store, OpenAIServer(_slow) as server:
                remember_party(store)
                yield _line(store, LlmToolbox(server))
        finally:
            EmbeddedPostgres(home).stop()


def _slow(request: dict[str, Any]) -> Answer:
    return Answer(obedient(request), delay_s=DELAY_S)


def _line(store: Store, toolbox: LlmToolbox) -> Line:
    _ask(store, toolbox, 1, 1)
    together, alone = [], []
    for _ in range(5):
        together.append(milliseconds(lambda: _ask(store, toolbox, AT_ONCE, AT_ONCE)))
        alone.append(milliseconds(lambda: _ask(store, toolbox, ALONE, 1)) * AT_ONCE / ALONE)
    return faster(
        f"{AT_ONCE} questions at once, a model of {DELAY_S * 1000:.0f} ms",
        Taken(tuple(together)),
        Taken(tuple(alone)),
        f"one after another ({ALONE} asked, times {AT_ONCE // ALONE})",
        BAR,
    )


def _ask(store: Store, toolbox: LlmToolbox, count: int, workers: int) -> None:
    asked = [
        BatchQuestion(id=n, video=PARTY, question=f"Who plays song {n} on the piano?")
        for n in range(count)
    ]
    found = list(run_batch(store, toolbox, asked, workers=workers))
    assert all(one.error is None for one in found), [one.error for one in found]
