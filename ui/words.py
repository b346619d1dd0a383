"""Words from outside, made safe to show: transcripts and titles are data, not Markdown."""

from __future__ import annotations

import re

JOINER = "\u2060"
"""Takes no room and may not be seen; what it stands in is no web address any more."""

_WITHIN = "\u200c\u200d"
"""Signs between letters that some scripts and joined emoji need."""

_SPECIAL = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&@^=])")
_TURNED = re.compile(
    r"""(https?://(?=[-.\w]) | www(?=\.) | @(?=[-\w])   # a link
    | :(?=material/|[-+]1:|100:|1234:|(?=[-+\w]++:)[-+\w]*?[a-z_])  # a picture; 0:02:05 is a time
    | (?<!\S)[<>~-](?=(?:->|[->=])(?!\S)))              # an arrow
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What Streamlit makes something else of, even where each sign of it is escaped."""


def plain(text: str) -> str:
    """``text`` such that Markdown shows exactly its words, on one line, and links to nothing."""
    line = "".join(c if c.isprintable() or c in _WITHIN else " " for c in text).strip()
    return _SPECIAL.sub(r"\\\1", _TURNED.sub(rf"\1{JOINER}", line))
