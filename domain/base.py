"""The base of every domain model, and the first problem of an invalid one in words."""

from pydantic import BaseModel, ConfigDict, ValidationError


class Frozen(BaseModel):
    """An immutable value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def first_problem(error: ValidationError, whole: str = "") -> str:
    """Describe the first problem of an invalid value as ``place: message``.

    Args:
        error: the error of its validation.
        whole: the place where the problem lies in no field; none is named by default.
    """
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or whole
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
