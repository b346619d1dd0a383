"""The API's documents and page say what can be asked; files are added from named folders only."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from starlette.routing import Match

from api.access import MIN_KEY_CHARS, AccessRules
from api.routes.health import HEADERS, docs_page
from api.routes.questions import Ask, ChatRequest
from api.routes.videos import Add, OutsideFolder, allowed_file, reject_url
from api.server import GRACE_S, PORT, make_app
from domain.asking import Mode
from domain.errors import InputError, NotFound
from library.params import DEFAULT_LIMIT, MAX_LIMIT
from library.registry import ACTS
from store.database import Store
from tests.support.api import WordState

TEXT = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
BLOCKS = "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)).replace("\\\n", " ")
CALLS = [shlex.split(line)[1:] for line in BLOCKS.splitlines() if line.startswith("curl ")]
BODIES: dict[str, type[BaseModel]] = {
    "/questions": Ask,
    "/videos": Add,
    "/videos/estimate": Add,
    "/v1/chat/completions": ChatRequest,
    **{act.route.split(" ")[1]: act.arguments for act in ACTS if act.route.startswith("POST ")},
}
PARTS = ["..", ".", "", "/", "~", "a", "\0", "\ud800", "é", Path(__file__).name, "conftest.py"]
EVIL = '<script>x()</script>&"'


def option(words: list[str], name: str) -> str | None:
    return words[words.index(name) + 1] if name in words else None


@pytest.mark.parametrize("words", CALLS, ids=range(len(CALLS)))
def test_every_call_in_the_document_can_be_made(words: list[str]) -> None:
    address = urlsplit(next(word for word in words if word.startswith("http://127.0.0.1")))
    assert address.port == PORT
    body = option(words, "-d")
    method = option(words, "-X") or ("POST" if body else "GET")
    scope: Any = {"type": "http", "method": method, "path": address.path, "headers": []}
    routes = make_app(cast("Any", None), AccessRules()).routes
    assert any(matches(route, scope) for route in routes), address.path
    if body is not None:
        assert "Content-Type: application/json" in words
        given = json.loads(body)
        posts = [act for act in ACTS if act.route.startswith("POST ")]
        act = next((a for a in posts if a.route.split("{")[0] in f"POST {address.path}"), None)
        if act is None:
            BODIES[address.path].model_validate(given)
        else:  # What is in the path is the last of it.
            named = dict.fromkeys(re.findall(r"{(\w+)}", act.route), address.path.split("/")[-1])
            act.arguments.model_validate(named | given)


def matches(route: Any, scope: Any) -> bool:
    return bool(route.matches(scope)[0] is Match.FULL)


def test_the_document_shows_every_way_to_ask() -> None:
    shown = {urlsplit(word).path for words in CALLS for word in words if word.startswith("http")}
    assert len(CALLS) > 12
    assert {path.split("/")[1] for path in shown} == {
        *("videos", "questions", "v1", "search", "tools", "media", "jobs", "alerts", "people")
    }
    for mode in Mode:
        assert f"`{mode}`" in TEXT


def test_its_limits_are_those_of_the_code() -> None:
    assert f"`limit` is {DEFAULT_LIMIT} by default and at most {MAX_LIMIT}" in TEXT
    assert f"of {MIN_KEY_CHARS} characters or more" in TEXT
    assert GRACE_S == 10


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, ...]:
    for name in ("one/talks", "two", "one-more"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("one/talks/talk.mp4", "two/film.mp4", "one-more/private.mp4", "secret.mp4"):
        (tmp_path / name).write_bytes(b"film")
    (tmp_path / "one" / "away.mp4").symlink_to(tmp_path / "secret.mp4")
    (tmp_path / "one" / "near.mp4").symlink_to(tmp_path / "one" / "talks" / "talk.mp4")
    (tmp_path / "one" / "circle").symlink_to(tmp_path / "one" / "circle")
    return tmp_path / "one", tmp_path / "two"


def test_files_are_named_whole_or_from_a_folder(folders: tuple[Path, ...]) -> None:
    talk = folders[0] / "talks" / "talk.mp4"
    for path in (str(talk), "talks/talk.mp4", "near.mp4", "talks/../talks//talk.mp4"):
        assert allowed_file(folders, path) == talk
    assert allowed_file(folders, "film.mp4") == folders[1] / "film.mp4"


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.mp4", "../one-more/private.mp4", "away.mp4", "/etc/passwd", "/dev/zero", "/"),
        *("", ".", "talks/../../secret.mp4", "../nothing.mp4", "\0", "a\0b", "\ud800"),
    ],
)
def test_what_lies_elsewhere_is_refused_alike(folders: tuple[Path, ...], path: str) -> None:
    with pytest.raises((OutsideFolder, NotFound)) as output:
        allowed_file(folders, path)
    assert "secret" not in str(output.value)
    with pytest.raises(OutsideFolder) as other:
        allowed_file((), path)
    assert "homer serve --videos" in other.value.help


def test_no_file_and_what_is_none_are_not_found(folders: tuple[Path, ...]) -> None:
    for path in ("nothing.mp4", "talks", "circle", "x" * 5000):
        with pytest.raises(NotFound):
            allowed_file(folders, path)


@given(st.lists(st.sampled_from(PARTS), max_size=6).map("/".join))
def test_no_path_leads_out_and_none_breaks_it(path: str) -> None:
    folder = Path(__file__).parent
    with suppress(OutsideFolder, NotFound):
        assert allowed_file([folder], path).is_relative_to(folder.resolve())


@pytest.mark.parametrize(
    "address",
    ["https://example.org/a.mp4", " http:/x", "file:///etc/passwd", "RTSP://cam", "a+b:/"],
)
def test_addresses_are_refused_with_the_reason(address: str) -> None:
    with pytest.raises(InputError, match="not fetched"):
        reject_url(address)


def schema(**output: Any) -> dict[str, Any]:
    """A description with one way that does what is told."""
    return {
        "info": {"title": "Homer"},
        "paths": {"/things/{id}": {"get": output}},
        "components": {},
    }


def body_schema(model: dict[str, Any]) -> dict[str, Any]:
    found = {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}
    return schema(requestBody={"content": found}) | {"components": {"schemas": {"Thing": model}}}


def test_parameters_are_reported_but_no_headers() -> None:
    parameters = [
        {"name": "limit", "in": "query", "description": "How many."},
        {"name": "id", "in": "path"},
        {"name": "accept", "in": "header", "description": "What form."},
    ]
    page = docs_page(schema(parameters=parameters))
    assert "<dt>limit</dt><dd>How many.</dd>" in page
    assert "<dt>id</dt><dd></dd>" in page
    assert "accept" not in page


def test_a_body_has_its_fields_and_examples() -> None:
    model = {"properties": {"path": {"description": "The file."}}, "examples": [{"path": "a.mp4"}]}
    page = docs_page(body_schema(model))
    assert "<h3>Body (JSON)</h3><dl><dt>path</dt><dd>The file.</dd></dl>" in page
    assert "&quot;path&quot;: &quot;a.mp4&quot;" in page
    assert "<pre>" not in docs_page(body_schema({"properties": {}}))


@pytest.mark.parametrize(
    "output",
    [
        {"summary": EVIL},
        {"description": EVIL},
        {"parameters": [{"name": EVIL, "in": "query", "description": EVIL}]},
    ],
)
def test_every_word_is_escaped(output: dict[str, Any]) -> None:
    page = docs_page(schema(**output))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_real_page_has_every_way_and_fetches_nothing() -> None:
    described = make_app(WordState(cast(Store, None), "local"), AccessRules()).openapi()
    page = docs_page(described)
    for path, ways in described["paths"].items():
        for way in ways:
            assert f"<code>{way.upper()} {path}</code>" in page
    assert page.count("<section>") == sum(map(len, described["paths"].values()))
    assert "<script" not in page
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]
