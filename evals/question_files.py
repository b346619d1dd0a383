"""Read a JSON file of questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from domain.base import first_problem
from domain.errors import InputError

Document = TypeVar("Document", bound=BaseModel)


def read_question_file(path: Path, schema: type[Document], kind: str) -> Document:
    """Read a file of questions; a list is taken as the document's ``questions``.

    Args:
        schema: the document's form.
        kind: what the file should hold, for the error.

    Raises:
        InputError: the file cannot be read, or does not have this form.
    """
    try:
        parsed = json.loads(path.read_text(encoding="utf-8"))
        return schema.model_validate({"questions": parsed} if isinstance(parsed, list) else parsed)
    except (OSError, ValueError, RecursionError) as error:
        problem = first_problem(error) if isinstance(error, ValidationError) else error
        raise InputError(f"{path} holds no {kind}: {problem}") from error
