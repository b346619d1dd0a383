"""The base of every domain model, and the first problem of an invalid one in words."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from domain.words import make_storable


class Frozen(BaseModel):
    """An immutable value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


# Postgres keeps no NUL, and UTF-8 no lone surrogate.
StorableText = Annotated[
    str, BeforeValidator(lambda value: make_storable(value) if isinstance(value, str) else value)
]
"""A text from outside, such as a file name, made storable when validated."""


def first_problem(error: ValidationError, whole: str = "") -> str:
    """Describe the first problem of an invalid value as ``place: message``.

    Args:
        whole: the place where the problem lies in no field; none is named by default.
    """
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or whole
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
