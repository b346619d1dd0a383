"""The app's words in other languages: all are in the catalogues, and English stays as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from domain.asking import LIKELIEST_ONLY, NOTE, PICTURES_NOT_SEARCHED
from domain.built import RULES
from domain.errors import MediaError, WeightsMissing
from domain.words import (
    ENGLISH,
    counted,
    format_number,
    join_words,
    reader,
    translate,
    translate_count,
    translate_sentence,
)
from library.answers import FIXED_NOTES
from models.weights import verified_folder
from perception.containers import open_media
from retrieval.built_views import writers_note
from tests.support.catalogues import (
    ERRORS,
    compiled,
    po_files,
    read,
    sentences,
    sources,
    template,
    untranslated,
)
from tests.support.shown_words import unwrapped
from ui.formatting import format_bytes, format_date, format_duration, format_usage
from ui.language import SENTENCES, best_language, in_english, literals_of
from ui.sharing import HEADERS

ROOT = Path(__file__).parents[2]
NO_PAGES = {"__main__.py", "application.py", "media.py", "server.py"}
"""Files of ``ui`` that draw nothing in words: the server, and its files over HTTP."""
VIEWS = tuple(
    f"library/{name}" for name in ("library_search", "sharing", "strategies", "transcript")
)
"""Modules whose words are all on pages."""
NO_WORDS = frozenset(
    {
        # Keys of the session, fields of charts, names of parts and files.
        *("library message", "jobs last seen", "failed uploads", "uploads sent", "search error"),
        *("result of a correction", "correction shown", "file of a forgotten person"),
        *("evaluation started", "schedule error", "started fork", "sought by player"),
        *("right so far", "share right", "US dollars", "second lower", "Clips", "Live"),
        *("{}.html", "{}.csv", "trajectory-{}.html", "/home/me/my-questions", "lines=5"),
        *("{}/deployments", "/api", "homer up", "homer schedule set watch folder=~/Videos"),
        *("Cache-Control", "Referrer-Policy", "Content-Security-Policy", "link {} ({})"),
        HEADERS["Content-Security-Policy"],
        # The same in every language.
        *("Homer", "Homer: {}", "{} h {} min", "{} min {} s"),
        # Stored, and compared in records.
        *("changed by a person", "app (password)"),
        # Shown once in a process, before its language is known.
        "Opening the library ...",
        # Commands, and what stands for "no file".
        *("homer doctor --fix", "homer db index", "homer models pull {}", "export {}=..."),
        *("homer-video", "top_level.txt", "{} ({})"),
        # The text of a prompt.
        "[image {}]",
        # A graph in DOT.
        *("digraph {", 'bgcolor="transparent"; rankdir="{}"; ranksep="0.5"; nodesep="0.2";'),
        'node [style="filled", fontcolor="#ffffff", color="transparent", fontsize="12"];',
        'edge [color="{}", fontcolor="{}", fontsize="10"];',
        *('v{} [label={}, shape="{}", fillcolor="{}"];', "v{} -> v{} [label={}];"),
        # Help and errors of commands in the files of ``VIEWS``.
        *("For how many days it is valid.", "The answer's id: homer trajectory lists them."),
        *("{} has no answer to share", "a moment is at most {} minutes long"),
        *("{} was not watched at {}", "Only those to this answer.", "{} is revoked"),
        *("Its id: homer share list has them.", "the signature is wrong"),
        *("it was signed for another time", "rules, or models by name", "built through clip {}"),
        *("what NAME-without-PART switches off", "of the video that was named"),
        "questions are asked by it where none is named",
    }
)
BELOW = (ROOT / "services" / "health.py",)
"""Files below the pages with words that are all shown on pages."""
JOINED = re.compile(r"[ ,:;]")
"""Begins what follows another text."""


def pages() -> list[Path]:
    drawn = [path for path in (ROOT / "ui").rglob("*.py") if path.name not in NO_PAGES]
    return [*sorted(drawn), *(ROOT / f"{name}.py" for name in VIEWS)]


@pytest.mark.parametrize("path", [*pages(), *BELOW], ids=lambda path: path.stem)
def test_what_a_page_shows_is_in_the_catalogues(path: Path) -> None:
    found = [
        f"{path.name}:{line}: {text!r}"
        for line, text in unwrapped(path.read_text("utf-8"))
        if text not in NO_WORDS
    ]
    assert found == [], "give these to translate()"


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ('st.button("Open")', True),
        ('st.caption(escape_markdown(f"clip {n}"))', True),
        ('st.text_input(translate("Name"), placeholder="a name")', True),
        ('def facts() -> str:\n    return "nothing was found"', True),
        ('st.write("yes" if good else translate("No"))', True),
        ('st.button(translate("Open"), key="open it", icon=":material/link:")', False),
        ('st.markdown(f"**{escape_markdown(title)}**")', False),
        ('page_link("video", translate("Video"))', False),
        ('counted(3, "failed clip")', False),
        ('def draw() -> None:\n    """Draw what was found."""', False),
    ],
)
def test_only_words_without_a_translation_are_found(shown: str, found: bool) -> None:
    assert bool(list(unwrapped(shown))) is found


def test_choices_have_a_placeholder_in_the_language_of_the_page() -> None:
    without = [
        f"{path.name}:{call.lineno}"
        for path in pages()
        for call in calls_in(path)
        if ast.unparse(call.func) in {"st.multiselect", "st.selectbox"}
        and may_be_empty(call)
        and "placeholder" not in {given.arg for given in call.keywords}
    ]
    assert without == [], "Streamlit's own placeholder is English"


def calls_in(path: Path) -> Iterator[ast.Call]:
    nodes = ast.walk(ast.parse(path.read_bytes()))
    return (node for node in nodes if isinstance(node, ast.Call))


def may_be_empty(call: ast.Call) -> bool:
    index = next((given.value for given in call.keywords if given.arg == "index"), None)
    return ast.unparse(call.func) == "st.multiselect" or "None" in ast.unparse(index or call.func)


def test_messages_of_errors_are_made_where_they_are_raised() -> None:
    made = [
        f"{path.relative_to(ROOT)}:{call.lineno}: {ast.unparse(call.args[0])}"
        for path in sources()
        if b"raise " in path.read_bytes()
        for call in calls_in(path)
        if ast.unparse(call.func) in ERRORS and call.args and has_parts(call.args[0])
    ]
    assert made == [], "give one text, with values in it"


def has_parts(message: ast.expr) -> bool:
    joined = isinstance(message, ast.BinOp | ast.BoolOp | ast.IfExp)
    parts = ast.iter_child_nodes(message)
    return joined and any(isinstance(one, ast.Constant | ast.JoinedStr) for one in parts)


def test_stored_notes_are_those_that_are_translated() -> None:
    assert (NOTE, writers_note([RULES]), LIKELIEST_ONLY, PICTURES_NOT_SEARCHED) == FIXED_NOTES


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_what_is_drawn_apart_from_the_page_has_its_language(path: Path) -> None:
    apart = [
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any("st.fragment" in ast.unparse(one) for one in node.decorator_list)
    ]
    for node in apart:
        first = ast.unparse(node.body[1] if ast.get_docstring(node) else node.body[0])
        assert first.startswith(("with show_errors()", "use_language()")), node.name


def ids(catalogue: Any) -> set[Any]:
    return {message.id for message in catalogue if message.id}


@pytest.mark.parametrize("path", po_files(), ids=lambda path: path.parts[-3])
def test_a_catalogue_has_all_words_and_no_others(path: Path) -> None:
    catalogue, hint = read(path), "run `make catalogues`, then translate what is new"
    assert ids(catalogue) == ids(template()), hint
    assert untranslated(catalogue) == [], hint
    assert not catalogue.obsolete, hint
    assert path.with_suffix(".mo").read_bytes() == compiled(catalogue), "run `make catalogues`"


def forms(text: Any) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("path", po_files(), ids=lambda path: path.parts[-3])
def test_translations_have_the_same_values_spaces_and_marks(path: Path) -> None:
    for message in read(path):
        for form in forms(message.string) if message.id else ():
            source = forms(message.id)[-1]
            assert placeholders(form) == placeholders(source), source
            assert form.count("**") == source.count("**"), source
            assert form.count("`") == source.count("`"), source
            assert bool(JOINED.match(form)) == bool(JOINED.match(source)), source
            assert not form.endswith(" "), source


def test_sentences_with_values_are_beside_the_catalogues() -> None:
    assert SENTENCES.read_text("utf-8").splitlines() == sentences(), "run `make catalogues`"
    for sentence in sentences():
        first, *inner, last = literals_of(sentence)
        assert re.search(r"[A-Za-z]{2}", first + "".join(inner) + last), f"{sentence}: fits all"
        assert all(inner), f"{sentence}: two values that nothing is between cannot be told apart"


def test_english_is_as_it_is_written() -> None:
    assert reader.get() is ENGLISH
    assert translate("Open") == "Open"
    assert (counted(1, "memory"), counted(1_200, "memory")) == ("1 memory", "1,200 memories")
    assert translate_count("{number} is", "{number} are", 2) == "2 are"
    assert join_words(["Ann", "{x}", "Eve"]) == "Ann, {x} and Eve"
    assert format_number(1234.5, ",.1f") == "1,234.5"
    assert format_number(0.85, ".0%") == "85%"
    assert format_bytes(1) == "1 bytes"


def test_words_and_numbers_are_german_where_that_is_chosen(in_german: None) -> None:
    assert translate("Open") == "Öffnen"
    assert counted(1, "memory") == "1 Erinnerung"
    assert counted(1_200, "memory") == "1.200 Erinnerungen"
    assert join_words(["Ann", "{x}", "Eve"]) == "Ann, {x} und Eve"
    assert format_number(0.85, ".0%") == "85\u00a0%"
    assert format_duration(8.24) == "8,2 s"
    assert format_bytes(3_100_000) == "3,1 MB"
    assert format_usage(1_200, 0.0031) == "1.200 Tokens, 0,0031 US-Dollar"
    with in_english():
        assert counted(2, "video") == "2 videos"
    assert counted(2, "frame") == "2 Einzelbilder"


def test_dates_are_written_as_the_language_does(in_german: None) -> None:
    at = datetime(2026, 11, 5, 7, 9, tzinfo=UTC)
    assert format_date(at) == "05.11.2026, 07:09 UTC"
    with in_english():
        assert format_date(at) == "2026-11-05 07:09 UTC"


def test_what_has_no_translation_is_english(in_german: None) -> None:
    assert translate("no such words") == "no such words"
    assert translate("") == ""
    assert counted(2, "unheard noun") == "2 unheard nouns"


def test_values_of_a_sentence_stay_and_the_sentences_among_them_do_not(in_german: None) -> None:
    sentence = "images and voices: CPU; speech: cpu, int8; there is also: cuda"
    there = "Bilder und Stimmen: CPU; Sprache: cpu, int8; außerdem vorhanden: cuda"
    assert translate_sentence(sentence) == there
    assert translate_sentence("/data/{0} is missing") == "/data/{0} fehlt"
    assert translate_sentence("model database") == "Modell database"
    assert translate_sentence("cannot be used") == "nicht verwendbar"
    assert translate_sentence("no such sentence") == "no such sentence"
    with in_english():
        assert translate_sentence(sentence) == sentence


def test_sentences_without_end_in_one_another_are_shown(in_german: None) -> None:
    shown = translate_sentence("at " * 5_000 + "x")
    assert shown.startswith("unter unter ")
    assert shown.endswith("at x")


def test_errors_are_translated_with_what_they_name(tmp_path: Path, in_german: None) -> None:
    path = tmp_path / "a b.mp4"
    for content, reason in (
        (None, "Datei nicht gefunden"),
        (b"", "Die Datei ist leer"),
        (b"words", "keine Video- oder Audiodatei, oder unlesbar beschädigt"),
    ):
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(MediaError) as caught:
            open_media(path)
        assert translate_sentence(str(caught.value)) == f"{path}: {reason}"
    with pytest.raises(WeightsMissing) as missing:
        verified_folder(tmp_path, "minilm")
    assert translate_sentence(str(missing.value)) == (
        f"das Modell minilm ist nicht verwendbar: model.onnx fehlt in {tmp_path / 'minilm'}. "
        "Abhilfe: homer models pull minilm"
    )


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (
            "https://a.example/b cannot be fetched: the connection broke (IncompleteRead); 1.5 MB "
            "are kept for a week, and the next try continues there",
            "https://a.example/b lässt sich nicht laden: die Verbindung brach ab (IncompleteRead); "
            "1.5 MB werden eine Woche lang aufbewahrt, und der nächste Versuch macht dort weiter",
        ),
        (
            "the plan cannot be edited so: t1 cannot be abandoned: it is not open; it has no text",
            "der Plan lässt sich so nicht ändern: t1 lässt sich nicht aufgeben, da nicht mehr "
            "offen; eine Teilfrage ist leer",
        ),
        (
            "https://a.example/b cannot be fetched: it is a page (text/html), and no video file; "
            "for pages, fetching needs yt-dlp: pip install yt-dlp",
            "https://a.example/b lässt sich nicht laden: es ist eine Seite (text/html) und keine "
            "Videodatei; für Seiten gilt: zum Laden wird yt-dlp gebraucht: pip install yt-dlp",
        ),
        (
            "the database homer on db:5432 cannot be reached (refused): see that it runs, then run "
            "this again",
            "die Datenbank homer auf db:5432 ist nicht erreichbar (refused): Sorgen Sie dafür, "
            "dass sie läuft, und versuchen Sie es noch einmal",
        ),
    ],
)
def test_reasons_within_an_error_are_translated(said: str, shown: str, in_german: None) -> None:
    assert translate_sentence(said) == shown


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        *(("de-AT", "de"), ("de", "de"), ("en-GB", "en"), ("fr", "en"), ("", "en"), ("*", "en")),
        *(("fr;q=0.9, de;q=0.8, en;q=0.1", "de"), ("en;q=0.3,de-DE;q=0.9", "de")),
        *(("de;q=x, en", "en"), (";;,,q=;" * 500, "en"), ("../de", "en")),
    ],
)
def test_the_language_follows_the_browser(accepted: str, code: str) -> None:
    assert best_language(accepted) == code
