"""The documentation page of the API, rendered from its OpenAPI description.

Unlike Swagger UI it needs no scripts from other servers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

TEMPLATE = Path(__file__).with_name("docs.page")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "frame-ancestors 'none'; base-uri 'none'",
}


def docs_page(schema: Mapping[str, Any]) -> str:
    """Render an OpenAPI description as an HTML page."""
    info = schema["info"]
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        title=escape(info["title"]),
        about=_paragraphs(info.get("description", "")),
        operations="\n".join(
            f"<section><h2>{escape(operation.get('summary', ''))}</h2>"
            f"<p><code>{escape(method.upper())} {escape(path)}</code></p>"
            f"{_paragraphs(operation.get('description', ''))}"
            f"{_parameters(operation.get('parameters', ()))}"
            f"{_body(schema, operation)}</section>"
            for path, methods in schema["paths"].items()
            for method, operation in methods.items()
        ),
    )


def _paragraphs(text: str) -> str:
    return "".join(
        f"<p>{escape(paragraph)}</p>" for paragraph in text.split("\n\n") if paragraph.strip()
    )


def _parameters(parameters: Any) -> str:
    items = "".join(
        f"<dt>{escape(parameter['name'])}</dt><dd>{escape(parameter.get('description', ''))}</dd>"
        for parameter in parameters
        if parameter["in"] != "header"
    )
    return f"<dl>{items}</dl>" if items else ""


def _body(schema: Mapping[str, Any], operation: Mapping[str, Any]) -> str:
    """Render the fields of a request's body, with examples."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return ""
    name = content["schema"]["$ref"].rpartition("/")[2]
    model = schema["components"]["schemas"][name]
    fields = [{"in": "body", "name": key, **field} for key, field in model["properties"].items()]
    examples_json = (json.dumps(field, indent=2) for field in model.get("examples", ()))
    examples = "".join(f"<pre>{escape(field)}</pre>" for field in examples_json)
    return f"<h3>Body (JSON)</h3>{_parameters(fields)}{examples}"
