"""What is stored, used by other programs or shown to models keeps its words whatever is renamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from agent.reasoners.replies import ResolutionReply, RewriteReply, SeenReply, SubtaskReply
from domain.errors import ModelError
from memory.writers.llm_clip import WrittenKeyframe, WrittenLine, WrittenName, WrittenSame
from memory.writers.llm_event import WrittenEdge, WrittenSegment
from models.chat import read_value
from tests.support.frozen.words import SNAPSHOT, everything, replies, schemas

AGREED: dict[str, Any] = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
NESTED: tuple[type[BaseModel], ...] = (
    *(SubtaskReply, ResolutionReply, RewriteReply, SeenReply),
    *(WrittenLine, WrittenSame, WrittenName, WrittenKeyframe, WrittenSegment, WrittenEdge),
)
HOW = "if that is meant, write the snapshot anew: python -m tests.support.frozen.words"


@pytest.fixture(scope="module")
def words() -> dict[str, Any]:
    return everything()


def test_the_snapshot_has_all_kinds_of_words(words: dict[str, Any]) -> None:
    assert set(words) == set(AGREED)


@pytest.mark.parametrize("kind", sorted(AGREED))
def test_no_word_is_renamed(kind: str, words: dict[str, Any]) -> None:
    assert words[kind] == AGREED[kind], HOW


def renamed(kind: type[BaseModel]) -> type[BaseModel]:
    """The same class by another name and with another docstring."""
    return type("Renamed", (kind,), {"__doc__": "Other words.", "__module__": __name__})


@pytest.mark.parametrize("kind", [*replies(), *NESTED])
def test_a_schema_does_not_depend_on_its_class_s_name_or_docstring(kind: type[BaseModel]) -> None:
    assert renamed(kind).model_json_schema() == kind.model_json_schema()


def test_a_complaint_about_a_reply_names_the_schema_not_the_class() -> None:
    with pytest.raises(ModelError) as output:
        read_value('{"subtasks": 5}', renamed(replies()[0]))
    assert str(output.value).startswith("the answer does not fit PlanReply: ")


def test_nested_classes_keep_the_names_that_definitions_have() -> None:
    defined = {name for schema in schemas().values() for name in schema.get("$defs", {})}
    assert defined == {kind.__name__ for kind in NESTED}
