"""Files that people write: skills and lists of addresses, from whatever editor they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import InputError
from domain.skills import Skill, Tone, Topic
from domain.texts import make_storable
from flows.schedules.work import _read_addresses
from skills.library import read_skills, write_skills
from tests.support.full_suite import examples
from tests.support.skills import a_skill

TOML = """
[[skills]]
name = "look-twice"
topic = "mode"
description = "Questions about who was there"
instructions = ["Look at two moments."]
"""
WORDS = st.text(min_size=1, max_size=20).filter(lambda text: len(make_storable(text)) > 0)


@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_list_has_an_address_a_line_and_remarks(tmp_path: Path, begin: str, end: str) -> None:
    file = tmp_path / "urls.txt"
    lines = ["https://a.example/feed", "# mine", "", "  https://b.example/#top  ", "  # no"]
    file.write_bytes(f"{begin}{end.join(lines)}".encode())
    assert _read_addresses(file) == ["https://a.example/feed", "https://b.example/#top"]


def test_no_list_has_no_addresses() -> None:
    assert _read_addresses(None) == []


def test_a_list_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_bytes(b"\xff\xfe\x00 no text")
    for name in ("urls.txt", "nothing.txt", "."):
        with pytest.raises(InputError, match="cannot be read"):
            _read_addresses(tmp_path / name)


@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_skills_are_read_as_people_write_them(tmp_path: Path, begin: str) -> None:
    (tmp_path / "mine.toml").write_bytes(f"{begin}{TOML}".encode())
    (one,) = read_skills(tmp_path / "mine.toml")
    assert (one.name, one.topic, one.version) == ("look-twice", Topic.MODE, 1)
    as_json = json.dumps({"skills": [one.model_dump(mode="json")]})
    (tmp_path / "mine.json").write_bytes(f"{begin}{as_json}".encode())
    assert read_skills(tmp_path / "mine.json") == [one]


SKILLS = st.builds(
    a_skill,
    name=st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True).filter(lambda n: len(n) <= 60),
    version=st.integers(1, 99),
    tone=st.sampled_from(Tone),
    description=WORDS,
    triggers=st.lists(WORDS, max_size=3).map(tuple),
    instructions=st.lists(WORDS, min_size=1, max_size=3).map(tuple),
)


@settings(max_examples=examples(15, 30))
@given(st.lists(SKILLS, min_size=1, max_size=4, unique_by=lambda one: one.name))
def test_what_is_exported_is_imported_as_it_was(place: Path, skills: list[Skill]) -> None:
    write_skills(place, skills)
    assert read_skills(place) == skills


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("skills") / "skills.json"


def written(*skills: dict[str, Any]) -> str:
    base = a_skill().model_dump(mode="json")
    return json.dumps({"skills": [base | one for one in skills]})


@pytest.mark.parametrize(
    ("name", "text", "output"),
    [
        ("s.json", "{", "cannot be read as skills"),
        ("s.toml", "= 1", "cannot be read as skills"),
        ("s.json", "[" * 100_000, "cannot be read as skills"),
        ("s.json", "[]", "has no skills: each is a table"),
        ("s.json", '{"skills": {}}', "has no skills: each is a table"),
        ("s.json", '{"skills": []}', "has no skills in it"),
        ("s.json", written({}, {}), "has 'order-of-events' twice"),
        ("s.json", written({"name": "Not Right"}), "skill 0.name: "),
        ("s.json", written({"name": "a"}, {"name": "b", "topic": "?"}), "skill 1.topic: "),
        ("s.json", written({"instructions": []}), "skill 0.instructions: "),
        ("s.json", written({"about": "x"}), "skill 0.about: "),
    ],
)
def test_what_is_no_skill_is_reported_by_its_place(
    tmp_path: Path, name: str, text: str, output: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        read_skills(tmp_path / name)
    assert str(tmp_path / name) in str(error.value)
    assert output in str(error.value)
