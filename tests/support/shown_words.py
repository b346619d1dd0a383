"""Find words that a page shows without ``translate``, so that they are in no catalogue."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

WRAPPERS = {"translate", "marked", "marked_each", "translate_count", "counted"}
SHOWING = {
    *("title", "header", "subheader", "caption", "write", "markdown", "text", "info", "warning"),
    *("error", "success", "toast", "metric", "button", "form_submit_button", "download_button"),
    *("link_button", "text_input", "text_area", "selectbox", "multiselect", "radio", "checkbox"),
    *("toggle", "pills", "file_uploader", "expander", "popover", "tabs", "status", "spinner"),
    *("progress", "dialog", "image", "page_link", "show_empty", "show_table", "InputError"),
}
"""Commands of Streamlit, and functions of the pages, that show their arguments."""
NOT_SHOWN = {
    *(
        "key",
        "icon",
        "type",
        "bind",
        "width",
        "language",
        "layout",
        "position",
        "vertical_alignment",
    ),
    *("horizontal_alignment", "label_visibility", "selection_mode", "on_click", "shortcut", "gap"),
    *("page_icon", "size", "duration", "default_name", "tone", "x", "y", "series", "format"),
}
"""Arguments that are no words."""
WORDS = re.compile(r"[A-Za-z]{2,}[^A-Za-z{}]* \S|\S [^A-Za-z{}]*[A-Za-z]{2,}|^[A-Z][a-z]+\b")
"""What looks like words for people: several, or one with a capital letter."""
LETTERS = re.compile(r"[A-Za-z]{2,}")
NO_WORDS = re.compile(r":\w+\[|^[\w.-]+/[\w.-]+$|&nbsp;")
"""Colours and the like in Markdown, types of files."""
NAMES = {"page_link": 0, "show_empty": 2, "streamlit_page": 0, "text_param": 0, "text_params": 0}
"""Functions that are given a name, of a page or a parameter, and where."""


def unwrapped(source: str, exempt: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """Yield what a file shows without ``translate``: line and text, ``{}`` for values.

    Args:
        source: Python code.
        exempt: texts that are no words for people.
    """
    for node, text in unwrapped_nodes(ast.parse(source)):
        if text not in exempt:
            yield node.lineno, text


def unwrapped_nodes(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield the strings that are shown and given to none of ``WRAPPERS``."""
    yield from _search(tree, shown=False)


def _search(node: ast.AST, *, shown: bool) -> Iterator[tuple[ast.expr, str]]:
    if _is_no_code(node):
        return
    if isinstance(node, ast.Constant | ast.JoinedStr):
        text = _text(node)
        if _is_words(text, shown=shown):
            yield node, text
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield from _search(part.value, shown=shown)
        return
    if isinstance(node, ast.Call):
        yield from _search_call(node, shown=shown)
        return
    if isinstance(node, ast.Compare | ast.Subscript):
        shown = False
    for child in ast.iter_child_nodes(node):
        yield from _search(child, shown=shown)


def _is_no_code(node: ast.AST) -> bool:
    """Return whether a node is a docstring, or the list of a module's names."""
    if isinstance(node, ast.Assign):
        return any(_name(one) == "__all__" for one in node.targets)
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _search_call(node: ast.Call, *, shown: bool) -> Iterator[tuple[ast.expr, str]]:
    name = _name(node.func)
    yield from _search(node.func, shown=shown)
    for place, argument in enumerate(node.args):
        kinds = ast.Constant | ast.JoinedStr if name == "marked" else ast.Constant
        is_wrapped = name in WRAPPERS and isinstance(argument, kinds)
        if not is_wrapped and NAMES.get(name) != place:
            yield from _search(argument, shown=shown or name in SHOWING)
    for keyword in node.keywords:
        if keyword.arg not in NOT_SHOWN:
            yield from _search(keyword.value, shown=shown or name in SHOWING)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
    )


def _is_words(text: str, *, shown: bool) -> bool:
    if text.lstrip().startswith(("<", ":material/")) or "_{}" in text:
        return False
    text = NO_WORDS.sub("", text)
    return bool((LETTERS if shown else WORDS).search(text))
