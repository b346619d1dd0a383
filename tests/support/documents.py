"""``python -m tests.support.documents`` writes the tables of what can be done into the pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from library.registry import ACTS
from tests.support.commands import homer, walk

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "watch": "streams.md",
    "recap": "schedules.md#recaps",
    "share": "privacy.md#links",
    "rights": "privacy.md#rights",
    "train": "training.md",
    "serve": "api.md",
    "mcp": "mcp.md",
    "alert": "alerts.md",
    "schedule": "schedules.md",
    "reembed": "profiles.md",
    "eval": "evaluation.md",
    "strategies": "strategies.md",
}
"""The page about a command or group."""


def sentence(text: str) -> str:
    """The first sentence of a help, without its end, fit for a cell."""
    first = re.split(r"(?<=[.:]) |\n\n", text.strip(), maxsplit=1)[0]
    return " ".join(first.split()).rstrip(".:").replace("|", "\\|")


def commands() -> Iterator[tuple[str, str]]:
    """Every command with its arguments, and what it does; the first of a group names its page."""
    pages = {**PAGES}
    for path, command in walk(homer()):
        if getattr(command, "commands", {}):
            continue
        words = []
        for one in command.params:
            word = one.metavar or one.name.upper()
            if one.param_type_name == "argument":
                words.append(word if one.required else f"[{word}]")
            elif one.required:
                words.append(f"{one.opts[0]} {word}")
        page = pages.pop(path.split(" ")[1], "")
        more = f" ([{page.partition('#')[0]}]({page}))" if page else ""
        yield " ".join([path, *words]), sentence(command.help or "") + more


def table(heads: tuple[str, str], rows: Iterator[tuple[str, str]]) -> str:
    """A table of Markdown, with the first column as code."""
    lines = [f"| `{left.replace('|', chr(92) + '|')}` | {right} |" for left, right in rows]
    return "\n".join([f"| {heads[0]} | {heads[1]} |", "|---|---|", *lines])


def generated() -> dict[str, str]:
    """The generated part of each page, by its name."""
    does = "what it does"
    routes = ((act.route, sentence(act.help)) for act in ACTS if act.route)
    tools = ((act.tool, sentence(act.help)) for act in ACTS if act.tool)
    return {
        "commands.md": table(("command", does), commands()),
        "api.md": table(("request", does), routes),
        "mcp.md": table(("tool", does), tools),
    }


def with_generated(page: str, part: str) -> str:
    """A page with its generated part between the two comments."""
    begin, end = "<!-- made from the registry -->", "<!-- until here -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}\n{part}\n{end}", page, flags=re.DOTALL)


if __name__ == "__main__":
    for name, part in generated().items():
        path = DOCS / name
        path.write_text(with_generated(path.read_text("utf-8"), part), "utf-8")
