"""Which edges MemDreamer's memory may have."""

from __future__ import annotations

import pytest

from strategies.memdreamer.levels import GRAPH, MACRO, SUPER, is_allowed


@pytest.mark.parametrize(
    ("level", "subject", "label", "target"),
    [
        (GRAPH, "PERSON", "PERFORMS", "EVENT"),
        (GRAPH, "OBJECT", "USES_TOOL", "EVENT"),
        (GRAPH, "EVENT", "HAPPENS_IN", "LOCATION"),
        (GRAPH, "EVENT", "BEFORE", "EVENT"),
        (GRAPH, "TEXT", "ANNOTATES", "OBJECT"),
        (GRAPH, "PERSON", "NEXT_TO", "GROUP"),
        (MACRO, "MACRO", "ENABLES", "MACRO"),
        (SUPER, "SUPER", "LEADS_TO", "SUPER"),
    ],
)
def test_an_edge_between_ends_of_its_kinds_is_allowed(
    level: str, subject: str, label: str, target: str
) -> None:
    assert is_allowed(level, subject, label, target)


@pytest.mark.parametrize(
    ("level", "subject", "label", "target"),
    [
        (GRAPH, "EVENT", "PERFORMS", "PERSON"),
        (GRAPH, "PERSON", "BEFORE", "EVENT"),
        (GRAPH, "PERSON", "LIKES", "PERSON"),
        (GRAPH, "TEXT", "PERFORMS", "EVENT"),
        (MACRO, "MACRO", "LEADS_TO", "MACRO"),
        (SUPER, "SUPER", "CAUSES", "SUPER"),
        (SUPER, "MACRO", "LEADS_TO", "SUPER"),
    ],
)
def test_an_edge_between_other_ends_is_not(
    level: str, subject: str, label: str, target: str
) -> None:
    assert not is_allowed(level, subject, label, target)
