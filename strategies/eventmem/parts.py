"""The parts of EventMemAgent that can be switched off, to measure what each adds."""

from __future__ import annotations

SHORT_TERM, LONG_TERM = "short", "long"

PARTS = {
    SHORT_TERM: "the short-term memory is not looked at first",
    LONG_TERM: "the long-term memory is not searched",
}
