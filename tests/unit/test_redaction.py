"""Whatever stands in a record, only what is known to be without content is shown."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from telemetry import redaction

MARK = "zQx7"
WORDS = st.text(max_size=12).map(lambda text: f"{text}{MARK}")
VALUES = st.recursive(
    WORDS | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        *("mode", "purpose", "where", "message", "error", "cause", "trace", "video", "event"),
        *("kind", "clip", "ms", "answer", "level", "said", "round", "sqlstate"),
    ]
)
TABLES = st.dictionaries(KEYS, VALUES, max_size=8)
AT = "2026-01-01T00:00:00.000+00:00"


@given(TABLES)
def test_no_word_of_an_event_is_shown(payload: dict[str, Any]) -> None:
    assert MARK not in json.dumps(redaction.redact_event(payload))


@given(TABLES)
def test_no_word_of_a_record_is_shown(fields: dict[str, Any]) -> None:
    line = json.dumps({"at": AT, "level": "info", "event": "clip done", **fields})
    assert MARK not in json.dumps(list(redaction.redact_log([line])))


@given(st.text())
def test_any_line_can_be_read(line: str) -> None:
    assert MARK not in json.dumps(
        list(redaction.redact_log([line, f"{AT} info clip done: {line}"]))
    )
    assert redaction.count_known_words([line])["lines"] == 1


@given(st.dictionaries(st.sampled_from("abc"), VALUES))
def test_no_word_of_a_setting_is_shown(table: dict[str, Any]) -> None:
    assert MARK not in json.dumps(redaction.numbers_of(table))


def test_both_forms_of_the_log_show_the_same() -> None:
    output = {"video": "0123456789abcdef", "clip": 3, "error": "OSError", "trace": ["OSError"]}
    as_json = json.dumps({"at": AT, "level": "info", "event": "clip done", **output})
    fields = 'video="0123456789abcdef" clip=3 error="OSError" trace=["OSError"]'
    first, second = redaction.redact_log([as_json, f"{AT} info clip done: {fields}"])
    assert first == second == {"at": AT, "level": "info", "event": "clip done", **output}


def test_an_error_is_classed_by_what_homer_says() -> None:
    assert redaction.error_kind("openai:x did not answer: Anna") == "the model did not answer"
    assert redaction.error_kind("Anna") == "something else"
    assert redaction.error_class("ModelError: Anna") == "ModelError"
    assert redaction.error_class("Anna: ModelError") is None
