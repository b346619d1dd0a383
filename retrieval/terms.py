"""Search terms of a text: lower case, without stop words, stemmed."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain

_STOP = """a an the of to in on at for and or is are was were be been being do does did done has
have had i me my mine we us our you your he she it its they them their this that these those
with from by as what who whose whom when where why how which will would can could should just
now then there here not no don t s re m ll ve d last time first before after during while
usually always most mostly currently today yesterday tonight tomorrow ago about next more other
else one some any also so if into up out said say"""
STOP = frozenset(_STOP.split())
"""Stop words, including words of order and time, which ``temporal_fit`` handles."""

_TAG = re.compile(r"<((?:face|voice|character)_\d+)>")
_WORD = re.compile(r"[^\W_]+")
_TERM = re.compile(r"\d+(?:[.,:]\d+)+|[^\W_]+")
"""A number with its separators (``0.3``, ``1,200``, ``12:30``) is one term."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_CACHE_SIZE = 1 << 16
"""Number of words whose stems are cached."""
_SUFFIXES = ("ing", "ied", "ies", "es", "ed", "s", "ly")


def stem(word: str) -> str:
    """Return the English stem of a word: ``washing``, ``washed`` and ``washes`` give ``wash``."""
    suffix = next((s for s in _SUFFIXES if word.endswith(s) and len(word) - len(s) >= 3), "")
    if suffix:
        word = word.removesuffix(suffix) + ("y" if suffix in ("ied", "ies") else "")
        if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lse":
            word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def pieces(word: str) -> list[str]:
    """Return the word, or its character bigrams if its script is written without spaces."""
    if len(word) < 3 or not _UNSPACED.fullmatch(word):
        return [word]
    return [word[i : i + 2] for i in range(len(word) - 1)]


def plain_words(text: str) -> list[str]:
    """Return all words of ``text`` in lower case, stop words included."""
    return _WORD.findall(_without_possessives(text))


def _without_possessives(text: str) -> str:
    return text.casefold().replace("'s", "").replace("’s", "")


def content_words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case, without stop words."""
    return [word for word in plain_words(text) if word not in STOP]


def terms(text: str, *, english: bool = True) -> list[str]:
    """Return the search terms of ``text`` in order, repetitions included.

    A tag such as ``<face_3>`` is one term, ``face_3``. ``english``: whether English stop words are
    left out; some are words of sense in other languages, such as "Last" and "Not" in German.
    Stemming is the same in all languages: it only has to give equal words equal terms.
    """
    tags = _TAG.findall(text) if "<" in text else []
    plain = _TAG.sub(" ", text) if tags else text
    words = (word for word in _split_terms(plain) if not english or word not in STOP)
    return [*tags, *chain.from_iterable(map(_stems, words))]


def _split_terms(text: str) -> list[str]:
    return _TERM.findall(_without_possessives(text))


def database_words(text: str, *, english: bool = True) -> dict[str, str]:
    """Map the search terms of ``text`` to words or phrases for the database's full text.

    ``english`` is as for ``terms``.
    """
    # A tag is one word without its underscore, a pair of characters of a script without spaces is a
    # phrase of two, since the database indexes each of them as a word.
    tags = _TAG.findall(text) if "<" in text else []
    plain = _TAG.sub(" ", text) if tags else text
    words_by_term = {tag: tag.replace("_", "") for tag in tags}
    for word in _split_terms(plain):
        if english and word in STOP:
            continue
        for piece, term in zip(pieces(word), _stems(word), strict=False):
            spaced = _UNSPACED.fullmatch(piece) and len(piece) == 2
            words_by_term.setdefault(term, " ".join(piece) if spaced else piece)
    return words_by_term


@lru_cache(_CACHE_SIZE)
def _stems(word: str) -> tuple[str, ...]:
    """Return the search terms of a word in lower case."""
    return tuple(stem(piece) for piece in pieces(word))
