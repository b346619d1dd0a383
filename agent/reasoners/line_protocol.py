"""The text protocol: an action in three lines, ``Reason``, ``Action`` and ``Content``."""

from __future__ import annotations

import re
from typing import Any

_LINE = re.compile(
    r"^[\s*#>_-]*(?:\d+[.)]\s*)?(reason(?:ing)?|thought|action|content)[*_\s]*[:：][*_]*(.*)",
    re.I,
)
_MODE = re.compile(r"\W*\b(event|video|neighbou?r|keyframe)s?\b(?:\s+mode)?\W*", re.I)
_KIND = re.compile(r"\W*(search|answer)\w*\b\W*", re.I)
_CITED = re.compile(r"[\[(]\s*[msk]\d+(?:\s*[,;]\s*[msk]\d+)*\s*[\])]", re.I)
_EVIDENCE_REF = re.compile(r"\b[msk]\d+\b", re.I)
_MISSING = re.compile(r"\W*not\s+in\s+(?:the\s+)?memory\b", re.I)


def read_lines(text: str) -> dict[str, Any] | None:
    """Parse an action from plain lines; None if no line names the action."""
    parts = _parts(text.rpartition("</think>")[2])
    kind = _KIND.match(parts.get("action", ""))
    if kind is None:
        return None
    reason = parts.get("reason") or parts.get("thought") or parts.get("reasoning") or ""
    content = parts.get("content") or parts["action"][kind.end() :]
    read = _search if kind[1].lower() == "search" else _answer
    return {"reason": reason, "action": kind[1].lower(), **read(content)}


def _parts(text: str) -> dict[str, str]:
    """Return the text after each name, over all its lines; the first of each counts."""
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            current.append(line)
            continue
        current = [match[2]]
        parts.setdefault(match[1].lower(), current)
    return {name: " ".join(" ".join(lines).split()) for name, lines in parts.items()}


def _search(content: str) -> dict[str, Any]:
    mode = _MODE.match(content)
    query = content[mode.end() :] if mode else content
    named = mode[1].lower().replace("neighbour", "neighbor") if mode else None
    return {"mode": named, "query": query.strip(" \"'`()[]*")}


def _answer(content: str) -> dict[str, Any]:
    cited = _CITED.findall(content)
    return {
        "answer": _CITED.sub("", content).strip(" \"'`*"),
        "citations": _EVIDENCE_REF.findall(" ".join(cited).lower()),
        "not_in_memory": bool(_MISSING.match(content)),
    }
