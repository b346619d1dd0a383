"""Words from outside, made safe to show: transcripts and titles are data, not Markdown."""

from __future__ import annotations

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&@^=])")


def plain(text: str) -> str:
    """``text`` such that Markdown shows exactly its words, on one line.

    A bare web address may still become a link, to itself.
    """
    line = "".join(c if c.isprintable() else " " for c in text).strip()
    return _SPECIAL.sub(r"\\\1", line)
