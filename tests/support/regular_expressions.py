"""Every regular expression of the code, how it is used, and texts that make a bad one slow."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice, product
from pathlib import Path
from typing import Any

from tests.support.packages import homer_packages

ROOT = Path(__file__).parents[2]
PACKAGES = homer_packages()
METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
OF_RE = re.compile(r"\bre\.\w+\(")
OF_A_PATTERN = re.compile(rf"\.(?:{'|'.join(METHODS)})\(")
"""What calls of ``re`` and of patterns look like: files without them need no parsing."""
UNKNOWN = ("search", "fullmatch")
"""How a pattern is tried whose uses cannot be read from the code, such as one in a tuple.

``search`` stands for all that begin anywhere, ``fullmatch`` for all that have to reach the end.
"""

_PARSER: Any = importlib.import_module("re._parser")
_OPS: Any = importlib.import_module("re._constants")
_REPEATS = (_OPS.MAX_REPEAT, _OPS.MIN_REPEAT, _OPS.POSSESSIVE_REPEAT)
_ALPHABET = "aA0 _-.,:'\"<>(){}[]/\\\n\té中"


@dataclass(frozen=True)
class Use:
    """A pattern with one of the ways it is used, such as ``search``."""

    where: str
    pattern: re.Pattern[str]
    method: str

    def run(self, text: str) -> None:
        if self.method in ("sub", "subn"):
            self.pattern.sub(" ", text)
        elif self.method == "finditer":
            for _ in self.pattern.finditer(text):
                pass
        else:
            getattr(self.pattern, self.method)(text)


@dataclass(frozen=True)
class Call:
    """A call of a function of ``re``; ``pattern`` is None where it is not a literal."""

    file: str
    line: int
    method: str
    pattern: re.Pattern[str] | None
    in_function: bool


@cache
def sources() -> dict[str, str]:
    """The code's files by path."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}


@cache
def trees() -> dict[str, ast.Module]:
    """The same, parsed, but for files that know nothing of patterns."""
    return {file: ast.parse(text) for file, text in sources().items() if OF_RE.search(text)}


@cache
def calls() -> tuple[Call, ...]:
    """Each call of ``re.compile``, ``re.search`` and the like."""
    return tuple(call for file, tree in trees().items() for call in _calls(file, tree))


def _calls(file: str, tree: ast.Module) -> Iterator[Call]:
    inside = {
        id(node)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(outer)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (method := _function_of_re(node)):
            yield Call(file, node.lineno, method, _literal(node, method), id(node) in inside)


def _function_of_re(node: ast.Call) -> str | None:
    match node.func:
        case ast.Attribute(value=ast.Name(id="re"), attr=name) if name in (*METHODS, "compile"):
            return name
    return None


def _literal(node: ast.Call, method: str) -> re.Pattern[str] | None:
    first = node.args[0]
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return None
    named = [word.value for word in node.keywords if word.arg == "flags"]
    rest = node.args[1:] if method == "compile" else node.args[2:]
    flags = [one for one in (*named, *rest) if "re." in ast.unparse(one)]
    known = {"re": re}
    return re.compile(
        first.value,
        sum(eval(ast.unparse(one), known) for one in flags),  # noqa: S307 - our code
    )


@cache
def uses() -> tuple[Use, ...]:
    """Every pattern that modules hold, and every literal one, with each way it is used."""
    found: dict[tuple[str, int, str], Use] = {}
    methods = {
        file: _methods(ast.parse(text))
        for file, text in sources().items()
        if OF_A_PATTERN.search(text)
    }
    for file in sorted({call.file for call in calls() if call.method == "compile"}):
        for name, pattern in _held(file):
            # How a file's pattern is used: in that file or, where it is not private, in all.
            files = [file] if name.startswith("_") else list(methods)
            called = {method for one in files for method in methods.get(one, {}).get(name, ())}
            for method in sorted(called or UNKNOWN):
                use = Use(f"{file}:{name}", pattern, method)
                found.setdefault((pattern.pattern, pattern.flags, _kind(method)), use)
    for call in calls():
        if call.pattern is not None and call.method != "compile":
            use = Use(f"{call.file}:{call.line}", call.pattern, call.method)
            found.setdefault((call.pattern.pattern, call.pattern.flags, _kind(call.method)), use)
    return tuple(found.values())


def _kind(method: str) -> str:
    return method if method in ("match", "fullmatch", "search") else "all"


def _held(file: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The patterns that a module's names stand for, also within tuples and the like."""
    module = importlib.import_module(file.removesuffix(".py").replace("/", "."))
    for name, value in vars(module).items():
        for pattern in _patterns(value):
            yield name, pattern


def _patterns(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        yield from _patterns(tuple(value.values()))
    elif isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _patterns(one)


def _methods(tree: ast.Module) -> dict[str, set[str]]:
    called: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                if method in METHODS:
                    called.setdefault(name, set()).add(method)
    return called


@dataclass(frozen=True)
class Attack:
    """A text that makes a pattern try much: what it takes, a long run of that, and a bad end."""

    head: str
    run: str
    then: str
    tail: str

    def text(self, length: int) -> str:
        """The text of about ``length`` characters."""
        parts = [one for one in (self.run, self.then) if one]
        each = length // len(parts)
        return self.head + "".join(one * (each // len(one)) for one in parts) + self.tail


def attacks(pattern: re.Pattern[str]) -> Iterator[Attack]:
    """Texts of runs of what a pattern and its parts take, that end as it does not like."""
    tree = _PARSER.parse(pattern.pattern, pattern.flags)
    whole = _unique(_samples(tree), 4)
    tails = _unique(["\x00", "\n!", *_breaks(tree)], 8)
    runs = _unique([*_pumps(tree), *_ALPHABET, "a ", " a", "A. ", "0:", "A a ", "\n "], 60)
    repeated = [*_repeated(tree)]
    for run in runs:
        heads = {"", *(head for head, taken in repeated if run in taken)}
        yield from (Attack(head, run, "", tail) for head in sorted(heads) for tail in ["", *tails])
    for head, first, second in product(whole, runs[:5], runs[:5]):
        yield Attack(head, first, second, "\x00")


def _breaks(tree: Any) -> Iterator[str]:
    """Characters at which a negated class ends, and the last ones of the parts."""
    for op, value in tree:
        if op is _OPS.NOT_LITERAL:
            yield chr(value)
        elif op is _OPS.IN and value[0][0] is _OPS.NEGATE:
            yield from (chr(what) for kind, what in value[1:] if kind is _OPS.LITERAL)
        for part in _parts(op, value):
            yield from _breaks(part)


def _repeated(tree: Any, before: str = "") -> Iterator[tuple[str, list[str]]]:
    """What may be repeated within a pattern, each with what comes before it."""
    items = list(tree)
    for place, (op, value) in enumerate(items):
        parts = _parts(op, value)
        for start in _unique(_samples(items[:place]), 2) if parts else ():
            for part in parts:
                if op in _REPEATS:
                    yield before + start, _unique(_samples(part), 8)
                yield from _repeated(part, before + start)


def _pumps(tree: Any) -> Iterator[str]:
    """What a pattern or a part of it takes, to be repeated."""
    yield from _unique(_samples(tree), 6)
    items = list(tree)
    for end in range(1, len(items)):
        yield from _unique(_samples(items[:end]), 3)
    for op, value in items:
        for part in _parts(op, value):
            yield from _pumps(part)


def _parts(op: Any, value: Any) -> list[Any]:
    if op in _REPEATS:
        return [value[2]]
    if op is _OPS.BRANCH:
        return list(value[1])
    if op is _OPS.SUBPATTERN:
        return [value[3]]
    if op is _OPS.ATOMIC_GROUP:
        return [value]
    return [value[1]] if op in (_OPS.ASSERT, _OPS.ASSERT_NOT) else []


def _samples(items: Iterable[Any]) -> Iterator[str]:
    """Some texts that a sequence takes, roughly."""
    options = [_unique(_sampled(op, value), 4) for op, value in items]
    for turn in range(max((len(one) for one in options), default=0)):
        yield "".join(one[turn % len(one)] for one in options)


def _sampled(op: Any, value: Any) -> Iterator[str]:
    if op is _OPS.LITERAL:
        yield chr(value)
    elif op is _OPS.NOT_LITERAL:
        yield next(one for one in _ALPHABET if ord(one) != value)
    elif op is _OPS.ANY:
        yield from "a "
    elif op is _OPS.IN:
        yield from (one for one in _members(value))
    elif op in _REPEATS:
        yield from (one * max(1, min(value[0], 64)) for one in _samples(value[2]))
        if not value[0]:
            yield ""
    elif op in (_OPS.ASSERT, _OPS.ASSERT_NOT, _OPS.AT):
        yield ""
    else:
        for part in _parts(op, value):
            yield from _samples(part)


def _members(value: Any) -> Iterator[str]:
    """Characters of a class: usual ones first, then the first of each range."""
    negated = value[0][0] is _OPS.NEGATE
    for one in _ALPHABET:
        if any(_has(op, what, one) for op, what in value) != negated:
            yield one
    if not negated:
        for op, what in value:
            if op is not _OPS.CATEGORY:
                yield chr(what[0] if op is _OPS.RANGE else what)


def _has(op: Any, what: Any, one: str) -> bool:
    if op is _OPS.LITERAL:
        return bool(ord(one) == what)
    if op is _OPS.RANGE:
        return bool(what[0] <= ord(one) <= what[1])
    if op is _OPS.CATEGORY:
        name = str(what).removeprefix("CATEGORY_")
        kind, no = name.removeprefix("NOT_"), name.startswith("NOT_")
        is_in = {
            "DIGIT": one.isdigit(),
            "SPACE": one.isspace(),
            "WORD": one.isalnum() or one == "_",
        }
        return is_in[kind] != no
    return False


def _unique(texts: Iterable[str], most: int) -> list[str]:
    return list(islice(dict.fromkeys(text for text in texts if text), most)) or [""]
