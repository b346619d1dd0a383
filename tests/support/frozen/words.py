"""The words that are stored, that other programs use, or that a model is shown.

Renaming code must change none of them. ``everything`` collects them from the code as it is;
``snapshot.json`` beside this file has them as they were agreed on.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel

from domain.faults import FaultPoint
from domain.rights import Deed
from domain.trajectory import Event
from models.messages import request_hash

ROOT = Path(__file__).parents[3]
SNAPSHOT = Path(__file__).with_name("snapshot.json")
FLOWS = {"flow": "flow", "Step": "task"}
"""What makes a flow or a task of a name: a step becomes a task of its name."""


def everything() -> dict[str, Any]:
    """All of the words, by what they are words of, in a fixed order."""
    return {
        "events": events(),
        "tables": tables(),
        "fault points": values(FaultPoint),
        "deeds": values(Deed),
        "settings": settings(),
        "commands": commands(),
        "http": http(),
        "mcp": mcp(),
        "flows and tasks": flows(),
        "steps": steps(),
        "schemas": {name: _digest(schema) for name, schema in schemas().items()},
        "requests": requests(),
    }


def events() -> dict[str, list[str]]:
    """The fields of each kind of event of a trajectory."""
    union, *_ = get_args(Event)
    return {
        kind.model_fields["kind"].default: sorted(kind.model_fields) for kind in get_args(union)
    }


def tables() -> dict[str, list[str]]:
    """The columns of each table; exports have a record for each row, with the same names."""
    import store.tables.schema  # noqa: F401 - defines the tables
    from store.tables.library import Base

    return {
        name: sorted(column.name for column in table.columns)
        for name, table in sorted(Base.metadata.tables.items())
    }


def values(kind: type[Enum]) -> list[str]:
    return sorted(str(one.value) for one in kind)


def settings() -> list[str]:
    """Every setting by its path, as TOML has it."""
    from models.profile import Profile

    return sorted(_paths(Profile, ""))


def _paths(kind: type[BaseModel], before: str) -> Iterator[str]:
    for name, field in kind.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, BaseModel):
            yield from _paths(below, f"{before}{name}.")
        else:
            yield before + name


def commands() -> dict[str, list[str]]:
    from tests.support.commands import homer, walk

    options = {name: [*command.params] for name, command in walk(homer())}
    return {name: sorted(w for one in options[name] for w in one.opts) for name in sorted(options)}


def http() -> dict[str, Any]:
    """The paths of the API, and the fields of what is sent."""
    from typing import cast

    from api.access import AccessRules
    from api.server import make_app
    from store.database import Store
    from tests.support.api import WordState

    output = make_app(WordState(cast(Store, None), "local"), AccessRules()).openapi()
    return {
        "paths": {path: sorted(ways) for path, ways in sorted(output["paths"].items())},
        "fields": {
            name: sorted(one.get("properties", {}))
            for name, one in sorted(output["components"]["schemas"].items())
        },
    }


def mcp() -> dict[str, list[str]]:
    """The tools of the MCP server, and their arguments."""
    from api.mcp_server import asking_tool, reading_tools

    listed = [one.listed for one in (asking_tool(), *reading_tools())]
    return {tool.name: sorted(tool.input_schema["properties"]) for tool in listed}


def flows() -> list[str]:
    """The names of Prefect's flows and tasks."""
    return sorted({name for path in (ROOT / "flows").rglob("*.py") for name in _decorated(path)})


def _decorated(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        named = {one.arg: one.value for one in node.keywords}.get("name")
        if node.func.id in FLOWS and isinstance(named, ast.Constant):
            yield f"{FLOWS[node.func.id]} {named.value!s}"


def steps() -> list[str]:
    """The names of the machine's steps, which records have."""
    from graphs.machine import HOMER

    return sorted(HOMER.steps)


def schemas() -> dict[str, Any]:
    """The JSON schemas that models are given, by their titles."""
    found = (kind.model_json_schema() for kind in replies())
    return {schema["title"]: schema for schema in found}


def replies() -> tuple[type[BaseModel], ...]:
    from agent.reasoners.replies import (
        ActReply,
        AssessReply,
        ConcludeReply,
        LookReply,
        PlanReply,
        ReplanReply,
        TimedActReply,
    )
    from evals.judging import Ruling
    from memory.patches import WrittenPatch
    from memory.writers.llm_clip import WrittenClip
    from skills.writer import WrittenSkill

    return (
        *(PlanReply, ActReply, TimedActReply, AssessReply, LookReply, ReplanReply, ConcludeReply),
        *(WrittenClip, WrittenPatch, WrittenSkill, Ruling),
    )


def requests() -> dict[str, str]:
    """The hash of one request in each schema: by it a recorded reply is found again."""
    asked = [{"role": "user", "content": "What is opened?"}]
    return {name: request_hash("m", asked, schema, 0.0) for name, schema in schemas().items()}


def _digest(schema: Any) -> str:
    return sha256(json.dumps(schema, sort_keys=True).encode()).hexdigest()


def as_json(words: dict[str, Any]) -> str:
    return json.dumps(words, indent=1, sort_keys=True) + "\n"


if __name__ == "__main__":
    SNAPSHOT.write_text(as_json(everything()), encoding="utf-8")
