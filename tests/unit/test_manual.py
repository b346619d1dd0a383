"""The page that tells how the API is used has every way in it, and words are only words there."""

from __future__ import annotations

from typing import Any, cast

import pytest

from api.application import make_app
from api.auth import AccessRules
from api.docs_page import HEADERS, docs_page
from store.database import Store
from tests.support.api import WordState

EVIL = '<script>x()</script>&"'


def schema(**output: Any) -> dict[str, Any]:
    """A description with one way that does what is told."""
    return {
        "info": {"title": "Homer"},
        "paths": {"/things/{id}": {"get": output}},
        "components": {},
    }


def body_schema(model: dict[str, Any]) -> dict[str, Any]:
    found = {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}
    made = schema(requestBody={"content": found})
    return made | {"components": {"schemas": {"Thing": model}}}


def test_a_way_has_its_method_path_summary_and_what_it_says() -> None:
    page = docs_page(schema(summary="A thing", description="First.\n\nSecond\nline.\n\n \n\n"))
    assert "<h2>A thing</h2><p><code>GET /things/{id}</code></p>" in page
    assert "<p>First.</p><p>Second\nline.</p><" in page


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
