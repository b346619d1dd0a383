"""Asking a question: what every door makes of the words, videos and options that it is given."""

from __future__ import annotations

from collections.abc import Sequence

from domain.asking import Question, check_options
from domain.errors import InputError
from store.database import Store
from store.queries.videos import named_or_all


def make_question(
    store: Store,
    text: str,
    videos: Sequence[str] = (),
    options: Sequence[str] = (),
    as_of_ms: int | None = None,
) -> Question:
    """Return a question about these videos, or about all.

    Args:
        store: has the videos.
        text: the question.
        videos: ids, unambiguous beginnings, or titles.
        options: answers to choose from.
        as_of_ms: what was known by then; None: at the end.

    Raises:
        InputError: the question is empty, options cannot be told apart, or nothing was watched.
        NotFound: there is no such video.
    """
    if not text.strip():
        raise InputError("the question is empty")
    choices = check_options(options)
    with store.begin() as session:
        ids = named_or_all(session, videos)
    if not ids:
        raise InputError("nothing has been watched yet: homer ingest FILE")
    return Question(text=text.strip(), videos=ids, options=choices, as_of_ms=as_of_ms)
