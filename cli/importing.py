"""How a command gets ready: it imports without looking for garbage, and loads models meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from domain.garbage import garbage_collection_paused

if TYPE_CHECKING:
    from models.preload import Name
    from models.toolbox import Toolbox


@contextmanager
def ready_to_ask(toolbox: Toolbox) -> Iterator[None]:
    """In here a question can be asked at once: the machine is imported, its models are on the way.

    They begin after the imports, which would wait for processors that others use too: the question
    is put on record and planned meanwhile. Without a language model a second model is needed last.
    """
    with garbage_collection_paused():
        import graphs.ask  # noqa: F401
        from models.preload import preloading

    ranked: tuple[Name, ...] = ("reranker",) if toolbox.profile.reasoner == "local" else ()
    with preloading(toolbox, ("text", *ranked)):
        yield
