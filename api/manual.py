"""The page that tells people how the API is used, made of its own OpenAPI description.

The usual pages for such descriptions fetch scripts from elsewhere; this one needs none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

PAGE = Path(__file__).with_name("manual.page")
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'",
}


def manual(schema: Mapping[str, Any]) -> str:
    """The page as HTML."""
    info = schema["info"]
    return Template(PAGE.read_text("utf-8")).substitute(
        title=escape(info["title"]),
        about=_paragraphs(info.get("description", "")),
        operations="\n".join(_operations(schema)),
    )


def _operations(schema: Mapping[str, Any]) -> Iterator[str]:
    for path, ways in schema["paths"].items():
        for way, told in ways.items():
            yield (
                f"<section><h2>{escape(told.get('summary', ''))}</h2>"
                f"<p><code>{escape(way.upper())} {escape(path)}</code></p>"
                f"{_paragraphs(told.get('description', ''))}"
                f"{_parameters(told.get('parameters', ()))}{_body(schema, told)}</section>"
            )


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(one)}</p>" for one in text.split("\n\n") if one.strip())


def _parameters(parameters: Any) -> str:
    told = "".join(
        f"<dt>{escape(one['name'])}</dt><dd>{escape(one.get('description', ''))}</dd>"
        for one in parameters
        if one["in"] != "header"
    )
    return f"<dl>{told}</dl>" if told else ""


def _body(schema: Mapping[str, Any], told: Mapping[str, Any]) -> str:
    """The fields of a request's body, with examples."""
    content = told.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return ""
    name = content["schema"]["$ref"].rpartition("/")[2]
    model = schema["components"]["schemas"][name]
    fields = [{"in": "body", "name": key, **one} for key, one in model["properties"].items()]
    shown = (json.dumps(one, indent=2) for one in model.get("examples", ()))
    examples = "".join(f"<pre>{escape(one)}</pre>" for one in shown)
    return f"<h3>Body (JSON)</h3>{_parameters(fields)}{examples}"
