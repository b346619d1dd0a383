"""Parameters that several acts share, and how a parameter looks on a command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from domain.base import Frozen
from domain.errors import InputError
from domain.time import TimeSpan, parse_clock, parse_clock_span

T = TypeVar("T")

MAX_S = 1e11
"""Upper bound of times, in seconds."""
DEFAULT_LIMIT = 20
MAX_LIMIT = 100


class OnCommandLine:
    """How a parameter is written on a command line, where its name does not tell.

    Args:
        flags: ``--video``, ``-v``; none: its name with dashes.
        metavar: what stands for its value in the help.
        argument: it is given without a flag; by default, one without a default value is.
        only: it is not asked for over HTTP or MCP, since it names something of this machine.
    """

    def __init__(
        self, *flags: str, metavar: str = "", argument: bool = False, only: bool = False
    ) -> None:
        self.flags, self.metavar, self.argument, self.only = flags, metavar, argument, only


def _milliseconds(value: Any) -> Any:
    if value is None:
        return None
    seconds = value if isinstance(value, int | float) else parse_clock(str(value)) / 1000
    if not 0 <= seconds <= MAX_S:
        raise ValueError("no video is that long")
    return round(1000 * seconds)


AsOf = Annotated[
    int | None,
    BeforeValidator(_milliseconds),
    WithJsonSchema({"type": ["string", "number", "null"], "examples": ["12:30"]}),
    Field(description="Use only what was seen by then: seconds, MM:SS, H:MM:SS or d2 H:MM:SS."),
    OnCommandLine(metavar="MM:SS"),
]
Time = Annotated[
    int,
    BeforeValidator(_milliseconds),
    WithJsonSchema({"type": ["string", "number"], "examples": ["12:30"]}),
]
"""A time of a video, in milliseconds."""
Id = Annotated[
    str,
    Field(max_length=64, description="Id of a trajectory, or an unambiguous beginning of it."),
    OnCommandLine(metavar="ID"),
]
VideoName = Annotated[
    str,
    Field(max_length=400, description="The video's id, the beginning of it, or its title."),
    OnCommandLine(metavar="VIDEO"),
]


def _span(value: Any) -> Any:
    if isinstance(value, int | float):
        return TimeSpan.of(_milliseconds(value), _milliseconds(value))
    if isinstance(value, str):
        return parse_clock_span(value)
    if isinstance(value, tuple | list):
        return TimeSpan.of(*map(_milliseconds, value))
    return value


Span = Annotated[
    TimeSpan,
    BeforeValidator(_span),
    WithJsonSchema({"type": "string", "examples": ["12:30-12:45"]}),
    Field(description="12:30, or a span, 12:30-12:45."),
]


def several(given: Any) -> Any:
    """Return what may be given alone, or not at all, as a tuple."""
    return (given,) if isinstance(given, str) else given or ()


Videos = Annotated[
    tuple[Annotated[str, Field(max_length=400)], ...],
    BeforeValidator(several),
    Field(max_length=100, description="Only this video: its id or title. Repeatable; else all."),
    OnCommandLine("--video", "-v", metavar="VIDEO"),
]
OnlyVideo = Annotated[
    str | None,
    Field(
        max_length=400, description="Only this video: its id, the beginning of it, or its title."
    ),
    OnCommandLine("--video", "-v", metavar="VIDEO"),
]


def split_names(given: Any) -> Any:
    """Return the names of a repeatable option, whose values may also be separated by commas."""
    return tuple(
        part.strip() for value in several(given) for part in value.split(",") if part.strip()
    )


def read_lines(given: Any) -> tuple[str, ...]:
    """Replace ``@FILE`` by the lines of that file, and ``@-`` by those of standard input.

    Raises:
        InputError: a file cannot be read, or has no line.
    """
    found: list[str] = []
    for source in map(str, several(given)):
        # A file may be called so itself.
        if not source.startswith("@") or Path(source).exists():
            found.append(source)
            continue
        try:
            # Everybody on the machine can see a command line, and so a password in an address
            # there.
            text = sys.stdin.read() if source == "@-" else Path(source[1:]).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the file with addresses, {source[1:]}, cannot be read") from error
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            raise InputError(f"there is no address in {source[1:]}")
        found += lines
    return tuple(found)


Strategies = Annotated[
    tuple[str, ...],
    BeforeValidator(split_names),
    Field(description="Ask also by this strategy: see 'homer strategies'. Repeatable."),
    OnCommandLine("--strategy", "-s", metavar="NAME,..."),
]
ProfileName = Annotated[
    str | None,
    Field(
        description="Which models and settings to use: local, small, gemini, openai, ollama, one "
        "of homer.toml, or a TOML file. Default: $HOMER_PROFILE, then homer.toml, then local."
    ),
    OnCommandLine("--profile", "-p", metavar="NAME|FILE", only=True),
]
"""For what acts in a home; what acts in a workspace has it from the door."""
Direct = Annotated[bool, Field(description="Run in this process, without Prefect's server.")]
Offset = Annotated[
    int, Field(ge=0, le=10**9, description="Entries to skip: `next` of the page before.")
]
Limit = Annotated[
    int, Field(ge=1, le=MAX_LIMIT, description="Entries at most."), OnCommandLine(metavar="N")
]


Confirm = Callable[[str], None]
"""Asks whether to go on; raises if not."""


def agreed(question: str) -> None:
    """Go on: who calls was asked elsewhere."""


class Page(Frozen, Generic[T]):
    """A page of a list of ``total`` entries; ``next`` is the offset of the next page, if any.

    ``notes``: what is to be known besides.
    """

    # A generic model has no description of its own.
    model_config = ConfigDict(json_schema_extra={"description": "A page of a list."})
    items: tuple[T, ...]
    total: int
    offset: int = 0
    next: int | None = Field(default=None, description="pass it as `offset` for the next page")
    notes: tuple[str, ...] = ()


def page(items: list[T], total: int, offset: int) -> Page[T]:
    end = offset + len(items)
    return Page(
        items=tuple(items), total=total, offset=offset, next=end if items and end < total else None
    )
