"""The catalogues of translations: ``make catalogues`` takes in new words and compiles them.

Words that are not in the code any more are dropped. New ones are empty until somebody translates
them; ``tests/unit/test_translation.py`` says which are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from io import BytesIO
from itertools import count
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from domain import errors
from domain.alerts import DeliveryState
from domain.asking import ConfidenceLevel, Standing, SubtaskState
from domain.built import RULES
from domain.evaluation import ErrorType
from domain.media import LEVELS, ClipState, GapReason
from domain.memories import EdgeType, MemorySource, Relation
from domain.skills import Tone, Topic
from domain.words import SAMPLE, plural
from flows.addresses import IsPage
from flows.perception_workers import WorkerKilled
from memory.writers.llm_clip import BudgetSpent
from nodes.finish import NOT_IN_MEMORY, REASONER_ANSWERED, WHY
from nodes.plan import ALL_RESOLVED, NOTHING_LEFT, NOTHING_NEW
from nodes.tool_loop import ANSWERED
from store.queries.videos import DONE, FAILED, WATCHING
from strategies.registry import find_strategy, strategy_names
from ui.harness_remarks import HarnessPart
from ui.language import DOMAIN, LOCALE
from ui.language import SENTENCES as SENTENCES_FILE

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("agent", "auth", "domain", "evals", "flows", "graphs", "memory", "models", "people"),
    *("library", "perception", "retrieval", "services", "skills", "store", "strategies", "ui"),
)
NOT_SHOWN = (
    # What a server or a command says before there is a page.
    *("auth/signing_in.py", "domain/watching.py"),
    *("flows/build.py", "flows/reembed.py"),
    *("services/bug_report.py", "store/postmaster.py"),
    *("library/watching.py", "library/upkeep.py"),
    # Streams are watched by a command.
    "perception/live*.py",
    # Evaluations that the app does not start, and what a command is given for one.
    *("evals/caption_scales.py", "evals/plan.py"),
    "evals/training/*.py",
    # LangGraph Studio, llama-index.
    *("graphs/studio.py", "retrieval/adapters.py", "retrieval/vector_store.py"),
    # Imports and back-ups.
    *("memory/captions.py", "memory/import_captions.py", "store/backup.py"),
    "store/export.py",
)
"""Files whose errors no page shows."""
VALUES = (
    *(ClipState, ConfidenceLevel, DeliveryState, EdgeType, ErrorType, GapReason, HarnessPart),
    *(MemorySource, Relation, Standing, SubtaskState, Tone, Topic),
)
"""What a page shows of the domain's values; they are translated where they are shown."""
SENTENCES = (
    *(NOT_IN_MEMORY, DONE, FAILED, WATCHING, RULES),
    *(ALL_RESOLVED, NOTHING_NEW, NOTHING_LEFT, REASONER_ANSWERED, ANSWERED, WHY),
)
"""Fixed sentences and states that are stored."""

WORD = re.compile(r"(?:^|})[^{]*[^\W\d_]")
"""A letter that is not within the name of a value."""

ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.HomerError)
} | {one.__name__ for one in (BudgetSpent, IsPage, WorkerKilled)}
"""Classes whose messages are in the catalogues without being marked."""
MARKS = {"translate", "translate_count", "marked", "marked_each", "counted"}
HAS_WORDS = re.compile(rf"\b({'|'.join(MARKS | ERRORS)})\(".encode())

HEADER = """msgid ""
msgstr ""
"Language: {code}\\n"
"Plural-Forms: {plurals}\\n"
"MIME-Version: 1.0\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Content-Transfer-Encoding: 8bit\\n"

"""

Words = str | tuple[str, str]
"""A text, or its forms for one and for many."""


@cache
def words_in_code() -> tuple[Words, ...]:
    """Return what is in the code: texts, or their two forms."""
    return tuple(words for path in sources() for words in words_of(path.read_bytes()))


def sources() -> list[Path]:
    found = {path for name in PACKAGES for path in ROOT.glob(f"{name}/**/*.py")}
    return sorted(found - {path for pattern in NOT_SHOWN for path in ROOT.glob(pattern)})


def words_of(source: bytes) -> Iterator[Words]:
    """Yield the words of one file: also those within f-strings, which Babel does not read."""
    # Parsing takes long.
    for node in ast.walk(ast.parse(source)) if HAS_WORDS.search(source) else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from _words_of_call(node.func.id, [*map(_text, node.args)])


def _words_of_call(name: str, given: list[str]) -> Iterator[Words]:
    if name in {"translate", "marked"} | ERRORS and given and WORD.search(given[0]):
        yield given[0]
    if name == "marked_each":
        yield from given
    if name == "translate_count" and given[0] and given[1]:
        yield given[0], given[1]
    if name == "counted" and len(given) == 2 and given[1]:
        yield f"{{number}} {given[1]}", f"{{number}} {plural(given[1])}"


def _text(node: ast.expr) -> str:
    """Return a text of the code, ``{0} of {1}`` for one with values; "" if all is computed."""
    if isinstance(node, ast.JoinedStr):
        numbers = count()
        return "".join(_text(one) or f"{{{next(numbers)}}}" for one in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def sentences() -> list[str]:
    """Return the texts with values, as they are beside the catalogues."""
    return sorted({words for words in words_in_code() if isinstance(words, str) and "{0}" in words})


def shown_values() -> Iterator[str]:
    """Yield texts from below the pages that a page translates: values, and what strategies say."""
    yield from (str(value) for values in VALUES for value in values)
    yield from SENTENCES
    yield from (part for level in LEVELS for part in level.without)
    for name in strategy_names():
        strategy = find_strategy(name)
        yield strategy.title
        yield from strategy.tiers
        yield from (level.noun for level in strategy.levels)
        yield from strategy.node_types.values()


def template() -> Catalog:
    """Return a catalogue of what is shown, without translations."""
    catalogue = Catalog(domain=DOMAIN, project="Homer", charset="utf-8", fuzzy=False)
    for words in (*words_in_code(), *shown_values(), SAMPLE):
        catalogue.add(words)
    return catalogue


def po_files() -> list[Path]:
    """Return the catalogues that people write, one a language."""
    return sorted(LOCALE.glob(f"*/LC_MESSAGES/{DOMAIN}.po"))


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parts[-3])


def compiled(catalogue: Catalog) -> bytes:
    """Return a catalogue as gettext reads it; the same one gives the same bytes."""
    catalogue.creation_date = catalogue.revision_date = datetime(2026, 1, 1, tzinfo=UTC)
    out = BytesIO()
    write_mo(out, catalogue)
    return out.getvalue()


def update(path: Path) -> list[str]:
    """Take new words of the code into a catalogue and compile it; return what is untranslated."""
    catalogue = read(path)
    catalogue.update(template(), no_fuzzy_matching=True)
    catalogue.obsolete.clear()
    out = BytesIO()
    write_po(out, catalogue, width=100, omit_header=True, sort_output=True)
    header = HEADER.format(code=path.parts[-3], plurals=catalogue.plural_forms)
    path.write_text(header + out.getvalue().decode(), "utf-8")
    path.with_suffix(".mo").write_bytes(compiled(catalogue))
    return untranslated(catalogue)


def untranslated(catalogue: Catalog) -> list[str]:
    """Return the words of a catalogue that have no translation, or an uncertain one."""
    return [
        message.id if isinstance(message.id, str) else message.id[0]
        for message in catalogue
        if message.id and (message.fuzzy or not _is_whole(message.string))
    ]


def _is_whole(translation: object) -> bool:
    return all(translation if isinstance(translation, list | tuple) else (translation,))


def main() -> None:
    """Update every catalogue, and print what is left to translate."""
    SENTENCES_FILE.write_text("".join(f"{one}\n" for one in sentences()), "utf-8")
    for path in po_files():
        left = update(path)
        print(f"{path.relative_to(ROOT)}: {len(left)} to translate", *left, sep="\n  ")


if __name__ == "__main__":
    main()
