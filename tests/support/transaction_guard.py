"""Fail tests that call a model in an open transaction, since a call may take minutes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import pytest
from sqlalchemy.orm import Session

from models.chat import StructuredChat
from models.image_text import ImageTextEncoder
from models.text_embedding import CrossEncoderReranker, OnnxTextEmbedder
from models.text_endpoint import EndpointTextEmbedder
from store.database import Store
from tests.support.memory import WordVectors

MODELS: tuple[tuple[type[Any], str], ...] = (
    (StructuredChat, "ask"),
    (OnnxTextEmbedder, "embed"),
    (OnnxTextEmbedder, "embed_queries"),
    (EndpointTextEmbedder, "embed"),
    (EndpointTextEmbedder, "embed_queries"),
    (WordVectors, "embed"),
    (CrossEncoderReranker, "scores"),
    (ImageTextEncoder, "images"),
    (ImageTextEncoder, "text"),
)
"""What counts as a call of a model; the stand-ins of tests too."""

_open: ContextVar[int] = ContextVar("transactions that are open here", default=0)


class CallInTransaction(AssertionError):
    """A model was called while a transaction of the same thread was open."""


def refuse_calls_in_transactions(patch: pytest.MonkeyPatch) -> None:
    """From now on a model call within ``Store.begin`` raises ``CallInTransaction``."""
    patch.setattr(Store, "begin", _counted(Store.begin))
    for owner, name in MODELS:
        patch.setattr(owner, name, refuse_in_transaction(getattr(owner, name)))


def refuse_in_transaction(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``call`` to raise while a transaction is open."""

    @wraps(call)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if _open.get():
            raise CallInTransaction(f"{call.__qualname__} within an open transaction")
        return call(*args, **kwargs)

    return checked


def _counted(
    begin: Callable[..., AbstractContextManager[Session]],
) -> Callable[..., AbstractContextManager[Session]]:
    @contextmanager
    @wraps(begin)
    def counted(self: Store, **options: Any) -> Iterator[Session]:
        with begin(self, **options) as session:
            before = _open.get()
            _open.set(before + 1)
            try:
                yield session
            finally:
                _open.set(before)

    return counted
