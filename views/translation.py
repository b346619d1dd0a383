"""The app's words in the reader's language, from gettext catalogues.

English words are the keys of a catalogue. Outside the app the language stays English, and nothing
is looked up.
"""

from __future__ import annotations

import gettext
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from domain.marked import marked

ENGLISH = "en"
LOCALE = Path(__file__).with_name("locale")
"""Has ``CODE/LC_MESSAGES/homer.mo`` for each language besides English."""
DOMAIN = "homer"
SAMPLE = "1,234.5%"
"""A number; its translation shows how a language writes numbers."""

language: ContextVar[str] = ContextVar("language", default=ENGLISH)
"""The code of the language of what is drawn now."""


def translate(text: str) -> str:
    """Return a text in the language of the page; unchanged where the catalogue has none."""
    code = language.get()
    # To gettext, "" is the key of a catalogue's header.
    return _catalogue(code).gettext(text) if text and code != ENGLISH else text


def translate_count(one: str, many: str, number: int) -> str:
    """Return the form for a number, with the number in place of ``{number}``.

    ``translate_count("{number} day left", "{number} days left", 2)`` is ``2 days left``.
    """
    code = language.get()
    if code == ENGLISH:
        form = one if number == 1 else many
    else:
        form = _catalogue(code).ngettext(one, many, number)
    return form.replace("{number}", format_number(number))


def format_number(value: float, spec: str = ",") -> str:
    """Format a number: ``1,234``; with ``.2f`` ``0.85``; with ``.0%`` ``85%``."""
    text = format(value, spec)
    if language.get() == ENGLISH:
        return text
    sample = translate(SAMPLE)
    marks = str.maketrans({",": sample[1], ".": sample[5], "%": sample[7:]})
    return text.translate(marks)


@contextmanager
def in_english() -> Iterator[None]:
    """Leave words in English, for what is stored rather than shown."""
    before = language.set(ENGLISH)
    try:
        yield
    finally:
        language.reset(before)


@cache
def language_names() -> dict[str, str]:
    """Return the languages by code, each by its own name; English is first.

    A catalogue translates "English" to the name of its language.
    """
    codes = sorted(path.parts[-3] for path in LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.mo"))
    own = marked("English")
    return {ENGLISH: own} | {code: _catalogue(code).gettext(own) for code in codes}


def best_language(accepted: str) -> str:
    """Return the language that a reader prefers, of those that there are; English if none is.

    Args:
        accepted: a locale (``de-AT``), or an ``Accept-Language`` header.
    """
    wishes = []
    for wish in accepted[:200].split(","):
        tag, _, weight = wish.partition(";")
        wishes.append((_weight(weight), tag.strip().split("-")[0].lower()))
    found = [code for _, code in sorted(wishes, key=lambda wish: -wish[0])]
    return next((code for code in found if code in language_names()), ENGLISH)


def in_language(accepted: str) -> tuple[str, Callable[[str], str]]:
    """Return the language for an ``Accept-Language`` header, and what translates to it."""
    code = best_language(accepted)
    return code, _catalogue(code).gettext


def _weight(text: str) -> float:
    """Return the weight of a language in a header: ``q=0.8``; 1 where none is given."""
    number = text.strip().removeprefix("q=")
    try:
        return float(number) if number else 1.0
    except ValueError:
        return 0.0


@cache
def _catalogue(code: str) -> gettext.NullTranslations:
    return gettext.translation(DOMAIN, LOCALE, [code], fallback=True)
