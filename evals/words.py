"""Word error rate: how much of what was said is transcribed wrongly; pure.

Words are compared by sound rather than spelling conventions: in lower case, with accents, without
punctuation (an apostrophe inside a word stays), numbers as they are written. The rate is the least
number of insertions, deletions and substitutions, divided by the words that were said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_APOSTROPHES = str.maketrans("’‘ʼ`", "''''")


@dataclass(frozen=True)
class WordErrors:
    """The number of words said, and the edits between them and the transcript."""

    words: int = 0
    edits: int = 0

    def __add__(self, other: WordErrors) -> WordErrors:
        return WordErrors(self.words + other.words, self.edits + other.edits)

    @property
    def rate(self) -> float:
        """Return the word error rate in percent; it may exceed 100."""
        return 100.0 * self.edits / self.words if self.words else (100.0 if self.edits else 0.0)


def words_of(text: str) -> list[str]:
    """Split a text into normalised words."""
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    return _WORD.findall(plain)


def word_errors(said: str, written: str) -> WordErrors:
    """Count the errors of ``written``."""
    true = words_of(said)
    return WordErrors(len(true), _edits(true, words_of(written)))


def _edits(true: Sequence[str], written: Sequence[str]) -> int:
    """Return the Levenshtein distance between two lists of words."""
    row = list(range(len(written) + 1))
    for at, word in enumerate(true, 1):
        last, row[0] = row[0], at
        for column, other_word in enumerate(written, 1):
            replaced = last + (word != other_word)
            last = row[column]
            row[column] = min(replaced, row[column] + 1, row[column - 1] + 1)
    return row[-1]
