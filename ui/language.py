"""The language of the pages: that of the browser, or the one that was chosen.

The catalogues are gettext's, with English words as keys. Sentences of lower layers come in English
with values in them, by which they are recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from gettext import GNUTranslations
from pathlib import Path
from string import Formatter

import streamlit as st

from domain.words import ENGLISH, Reader, marked, reader, translate
from ui.components import component

CHOSEN = "language"
"""Session key of the language that was chosen."""
LOCALE = Path(__file__).with_name("locale")
"""Has ``CODE/LC_MESSAGES/homer.mo`` for each language besides English."""
DOMAIN = "homer"
SENTENCES = LOCALE / "sentences.txt"
"""The marked sentences with values, one a line; ``make catalogues`` writes it."""
DEEPEST = 50
"""A sentence that is a value of a sentence, and so on, is translated to this depth: texts from
outside are among the values."""
MOST_LISTED = 50
"""Sentences of a list that are translated one by one at a time, for the same reason."""


def use_language() -> None:
    """Translate what this run of the page draws.

    Streamlit runs fragments and the callbacks of buttons apart from the page, in threads of their
    own, so they call this too.
    """
    code = st.session_state.get(CHOSEN) or best_language(st.context.locale or "")
    reader.set(readers().get(code, ENGLISH))


def show_language() -> None:
    known = readers()
    if len(known) < 2:
        return
    st.session_state.setdefault(CHOSEN, reader.get().code)
    with st.sidebar:
        # Readers of screens pronounce a page by the language that it names.
        component("language")(key="page language", data={"language": reader.get().code})
        st.selectbox(
            translate("Language"),
            list(known),
            # A catalogue translates "English" to the name of its language.
            format_func=lambda code: known[code].gettext(marked("English")),
            key=CHOSEN,
        )


@contextmanager
def in_english() -> Iterator[None]:
    """Leave words in English, for what is stored rather than shown."""
    before = reader.set(ENGLISH)
    try:
        yield
    finally:
        reader.reset(before)


def best_language(accepted: str) -> str:
    """Return the language that a reader prefers, of those that there are; English if none is.

    Args:
        accepted: a locale (``de-AT``), or an ``Accept-Language`` header.
    """
    wishes = []
    # A header from outside may be of any length.
    for wish in accepted[:200].split(","):
        tag, _, weight = wish.partition(";")
        number = weight.strip().removeprefix("q=")
        try:
            rank = float(number) if number else 1.0
        except ValueError:
            rank = 0.0
        wishes.append((rank, tag.strip().split("-")[0].lower()))
    found = [code for _, code in sorted(wishes, key=lambda wish: -wish[0])]
    return next((code for code in found if code in readers()), ENGLISH.code)


def in_language(accepted: str) -> tuple[str, Callable[[str], str]]:
    """Return the language for an ``Accept-Language`` header, and what translates to it."""
    code = best_language(accepted)
    return code, readers()[code].gettext


class _Translated(GNUTranslations, Reader):
    """A language with a catalogue."""

    def sentence(self, text: str, depth: int = 0) -> str:
        """Translate a sentence, or one with values, and the sentences among those."""
        # A value may be one or two words of the catalogue, and is left.
        whole = self.gettext(text) if text and (depth == 0 or text.count(" ") >= 2) else text
        if whole != text or depth > DEEPEST:
            return whole
        for sentence, literals in _sentences():
            values = _values_between(literals, text)
            if values is not None:
                translated = [self.sentence(value, depth + 1) for value in values]
                return self.gettext(sentence).format(*translated)
        listed = text.split("; ", MOST_LISTED)
        if len(listed) == 1:
            return text
        return "; ".join(self.sentence(one, depth + 1) for one in listed)


@cache
def readers() -> dict[str, Reader]:
    """Return the languages by code; English is first."""
    found = {ENGLISH.code: ENGLISH}
    for path in sorted(LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.mo")):
        with path.open("rb") as file:
            translated = _Translated(file)
        translated.code = path.parts[-3]
        found[translated.code] = translated
    return found


def _values_between(literals: Sequence[str], text: str) -> list[str] | None:
    """Return the values that a text has between literals; None if it does not have them.

    Args:
        literals: at least two, none empty but the first and the last.
        text: of any length; the time grows with it, not with its square.
    """
    first, *inner, last = literals
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return None
    rest, values = text[len(first) : len(text) - len(last)], list[str]()
    for literal in inner:
        value, found, rest = rest.partition(literal)
        if not found:
            return None
        values.append(value)
    return [*values, rest]


@cache
def _sentences() -> list[tuple[str, tuple[str, ...]]]:
    """Return sentences and what they have between their values, those with the most of it first."""
    read = [(line, literals_of(line)) for line in SENTENCES.read_text("utf-8").splitlines()]
    return sorted(read, key=lambda one: -sum(map(len, one[1])))


def literals_of(sentence: str) -> tuple[str, ...]:
    """Return what a sentence has before, between and after its values."""
    parts = list(Formatter().parse(sentence))
    ends = () if parts[-1][1] is None else ("",)
    return (*(literal for literal, *_ in parts), *ends)
