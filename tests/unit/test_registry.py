"""The registry of acts: each door finds there what it needs, once for all acts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from fastapi.routing import APIRoute

from api.application import make_app
from api.auth import AccessRules
from cli import evals
from cli.main import COMMANDS
from cli.render import SHOWN, TABLES
from domain.errors import InputError
from library.params import Page
from library.registry import ACTS, GUIDES, Act
from tests.support.api import WordState


@pytest.mark.parametrize("act", ACTS, ids=lambda act: act.place)
def test_an_act_says_what_it_does_and_what_it_asks_for(act: Act) -> None:
    assert act.help.partition("\n")[0].endswith(".")
    assert "Args:" not in act.help
    assert next(iter(inspect.signature(act.function).parameters)) in ("workspace", "store", "home")
    for name, field in act.arguments.model_fields.items():
        assert field.description, name
    if act.command:
        known = COMMANDS | {f"eval {name}": one for name, one in evals.COMMANDS.items()}
        name = act.command if act.command in known else act.command.partition(" ")[0]
        assert known[name][0] == "door"
        assert f"homer {act.command}" in act.help, "an example"
        assert (act.help if name == act.command else GUIDES[name]).startswith(known[name][1])


@pytest.mark.parametrize("act", [act for act in ACTS if act.command], ids=lambda act: act.place)
def test_what_an_act_returns_can_be_shown_in_a_terminal(act: Act) -> None:
    kinds = shown_kinds(act.hints["return"])
    assert kinds <= {*TABLES, *SHOWN}, kinds


def shown_kinds(result: Any) -> set[str]:
    """The names of the types whose rows are shown of a result."""
    if get_origin(result) is Iterator:
        return {"str"}
    if get_origin(result) in (list, Union, UnionType):
        return set().union(*map(shown_kinds, get_args(result)))
    if isinstance(result, type) and issubclass(result, Page):
        return set().union(*map(shown_kinds, result.__pydantic_generic_metadata__["args"]))
    return {get_origin(result).__name__ if get_origin(result) is dict else result.__name__}


def test_no_two_acts_share_a_name_at_a_door() -> None:
    for names in (
        [act.place.partition(".")[2] for act in ACTS],
        [act.command for act in ACTS if act.command],
        [act.route for act in ACTS if act.route],
        [act.tool for act in ACTS if act.tool],
    ):
        assert len(names) == len(set(names))


def test_what_names_a_thing_of_this_machine_is_not_asked_for_over_http() -> None:
    app = make_app(WordState(None, "local"), AccessRules())  # type: ignore[arg-type]
    schema = app.openapi()
    assert any(isinstance(route, APIRoute) and route.path == "/alerts" for route in app.routes)
    for act in ACTS:
        local = act.parameters.keys() - act.remote.keys()
        if act.route:
            method, path = act.route.lower().split(" ")
            body = schema["components"]["schemas"].get(f"{act.function.__name__}_body")
            asked = str([schema["paths"][path][method], body])
            assert not [name for name in local if f"'{name}'" in asked], act.place
        assert local.isdisjoint(act.remote_arguments.model_fields)
    search = next(act for act in ACTS if act.tool == "search")
    with pytest.raises(InputError, match="like_file"):
        search.call(None, {"like_file": "/etc/passwd"}, remote=True)


@pytest.mark.parametrize(
    "given", [{}, {"name": "x" * 41}, {"name": "a", "threshold": 2}, {"name": "a", "what": 1}]
)
def test_what_an_act_does_not_take_is_refused_before_it_is_done(given: dict[str, Any]) -> None:
    act = next(act for act in ACTS if act.command == "alert add")
    with pytest.raises(InputError):
        act.call(None, given)
