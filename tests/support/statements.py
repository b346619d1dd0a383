"""The statements that the database gets meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session


@contextmanager
def statements(session: Session) -> Iterator[list[tuple[str, Any]]]:
    """Note what is sent to the database, with its parameters."""
    sent: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, given: Any, _x: Any, _many: Any) -> None:
        sent.append((statement, given))

    engine = session.get_bind()
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)
