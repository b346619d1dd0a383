"""The citations of a recap as links to the moments of the app, or as times alone."""

from __future__ import annotations

import re

from domain.texts import WORD_JOINER

_MOMENT = r"(?:d\d+ )?[\d:]+"
_CITATION = re.compile(rf"(?<!\\)\[({_MOMENT})-({_MOMENT}), s(\d+)\]")
_ESCAPED = re.compile(r"\\([^0-9A-Za-z\s])")
_LEADING_ZERO = re.compile(r"(?<![:\d])0(\d:)")


def linked_citations(text: str, video: str, app: str = "") -> str:
    """Return a recap in Markdown whose citations lead to the events on the video's page.

    Args:
        text: the recap as it is stored.
        video: the video's id.
        app: the app's address; "": the link is for a page of the app itself.
    """
    page = f"{app}/video?video={video}"
    return _CITATION.sub(lambda found: f"[{_times(found)}]({page}&segment={found[3]})", text)


def cited_times(text: str) -> str:
    """Return a recap for a terminal: citations are times alone, and Markdown is not escaped."""
    shown = _ESCAPED.sub(r"\1", _CITATION.sub(lambda found: f"[{_times(found)}]", text))
    return shown.replace(WORD_JOINER, "")


def _times(found: re.Match[str]) -> str:
    return _LEADING_ZERO.sub(r"\1", f"{found[1]}-{found[2]}")
