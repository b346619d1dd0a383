"""Mark words of the app in any layer: they are in the catalogues, and translated where shown."""

from __future__ import annotations


def marked(text: str) -> str:
    """Return a text unchanged; it is in the catalogue, and is translated where it is shown.

    An f-string is in the catalogue with numbers for its values: ``{0} of {1}``. The page translates
    it with ``domain.words.translate_sentence``.
    """
    return text


def marked_each(*texts: str) -> tuple[str, ...]:
    """Return texts unchanged; each is in the catalogue, as with ``marked``."""
    return texts
