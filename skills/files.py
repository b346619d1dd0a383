"""Skill files: TOML as people write it, JSON as exported."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from domain.base import first_problem
from domain.errors import InputError
from domain.skills import Skill
from store.files import open_private

_SKILLS = TypeAdapter(list[Skill])
MOST_BYTES = 4 << 20


def read_skills(file: Path) -> list[Skill]:
    """Read the skills of a file, at least one.

    Raises:
        InputError: the file cannot be read, or holds no valid skills.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InputError(f"{file} is refused: skills take no more than {MOST_BYTES >> 20} MB")
        text = data.decode("utf-8-sig")
        document = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read as skills: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("skills"), list):
        raise InputError(f"{file} has no skills: each is a table [[skills]] with a name")
    raw = document["skills"]
    try:
        skills = _SKILLS.validate_python(raw)
    except ValidationError as error:
        raise InputError(f"{file}: skill {first_problem(error)}") from error
    names = [skill.name for skill in skills]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{file} has {repeated[0]!r} twice")
    if not skills:
        raise InputError(f"{file} has no skills in it")
    return skills


def write_skills(file: Path, skills: Sequence[Skill]) -> None:
    """Write skills so that ``read_skills`` returns the same, readable by the owner only.

    Raises:
        InputError: the file cannot be written.
    """
    data = {"skills": [skill.model_dump(mode="json") for skill in skills]}
    try:
        with open_private(file) as out:
            out.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from error
