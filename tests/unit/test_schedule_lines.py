"""Schedules as people tell them, on the command line or in homer.toml: what is taken, what not."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.errors import HomerError, InputError, SetupError
from domain.watching import MAX_INTERVAL_S, MIN_INTERVAL_S, When, parse_when
from flows.schedules.kinds import (
    KINDS,
    declared_schedules,
    kind_named,
    parse_options,
    parse_schedule,
    schedule_digest,
)
from services.supervisor import work_pool_name

Before = dict[str, Any]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
keys = st.sampled_from(["kind", "when", "on", "folder", "urls", "keep", "right", "x"])


def test_only_what_does_no_harm_runs_unasked() -> None:
    assert [kind.name for kind in KINDS if kind.on] == ["check"]


def test_what_needs_to_be_told_something_is_not_ready() -> None:
    ready = {kind.name for kind in KINDS if kind.is_ready}
    assert ready == {"learn", "recap", "alerts", "retain", "build", "backup", "check"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_flow_of_every_kind_is_there_and_takes_its_options(kind: Any) -> None:
    from inspect import signature

    from prefect.utilities.importtools import import_object

    flow = import_object(kind.flow)
    assert flow.name == kind.name
    assert set(signature(flow.fn).parameters) == set(kind.options.model_fields)
    fields = kind.options.model_fields.values()
    needed = [field.is_required() for field in fields]
    assert [one.default is one.empty for one in signature(flow.fn).parameters.values()] == needed


def test_a_folder_means_the_same_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one = parse_schedule("watch", {"folder": "videos", "when": "every hour"})
    assert one.options == {"folder": str(tmp_path / "videos"), "stable_s": 10.0}
    assert one.when == When(every_s=3600)
    assert one.on


@pytest.mark.parametrize(
    ("name", "table", "output"),
    [
        ("watch", {}, "folder: Field required"),
        ("watch", {"folder": "x", "colour": "red"}, "colour: Extra inputs are not permitted"),
        ("watch", {"folder": "x", "stable_s": "soon"}, "stable_s"),
        ("fetch", {"urls": ["https://example.org/a"]}, "say right=yes"),
        ("fetch", {"right": True}, "name urls=... or file=..."),
        ("fetch", {"right": True, "urls": ["file:///etc/passwd"]}, "no http or https address"),
        ("backup", {"keep": 0}, "keep"),
        ("backup", {"on": "perhaps"}, "on is true or false"),
        ("backup", {"when": "soon"}, "says no time"),
        ("Back up", {}, "is no name of a schedule"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(name: str, table: Before, output: str) -> None:
    with pytest.raises(InputError, match=output):
        parse_schedule(name, table)


def test_an_option_that_takes_several_is_written_several_times() -> None:
    pairs = ["urls=https://a.example/x?a=1", "urls=https://b.example", "right=yes"]
    output = parse_options(kind_named("fetch"), pairs)
    assert output["urls"] == ["https://a.example/x?a=1", "https://b.example"]
    assert parse_schedule("fetch", output).options["right"] is True


@pytest.mark.parametrize("pairs", [["keep"], ["keep=1", "keep=2"]])
def test_an_option_that_is_no_pair_or_there_twice_is_refused(pairs: list[str]) -> None:
    with pytest.raises(InputError):
        parse_options(kind_named("backup"), pairs)


def test_the_file_is_read_with_names_and_kinds(tmp_path: Path) -> None:
    config = tmp_path / "homer.toml"
    config.write_text(
        'profile = "local"\n[schedules.backup]\nwhen = "sunday 02:00"\nkeep = 4\n'
        '[schedules.talks]\nkind = "watch"\nfolder = "/talks"\non = false\n'
    )
    found = declared_schedules(config)
    assert {name: (one.kind, str(one.when), one.on) for name, one in found.items()} == {
        "backup": ("backup", "sunday 02:00", True),
        "talks": ("watch", "every 5 minutes", False),
    }


def test_without_a_file_nothing_is_declared(tmp_path: Path) -> None:
    assert declared_schedules(tmp_path / "homer.toml") == {}


@pytest.mark.parametrize(
    "text", ["[schedules", "schedules = 1", "schedules.a = 1", "[schedules.fetch]", "\xff"]
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str) -> None:
    config = tmp_path / "homer.toml"
    config.write_bytes(text.encode("latin-1"))
    with pytest.raises(SetupError, match=r"homer\.toml"):
        declared_schedules(config)


def test_a_change_in_the_file_is_seen_and_only_that() -> None:
    one = parse_schedule("backup", {"keep": 4})
    assert schedule_digest(one) == schedule_digest(
        parse_schedule("backup", {"keep": 4, "when": "daily 03:00"})
    )
    assert schedule_digest(one) != schedule_digest(parse_schedule("backup", {"keep": 5}))


@given(st.sampled_from([kind.name for kind in KINDS]), st.dictionaries(keys, json_values))
def test_no_table_does_harm(name: str, table: Before) -> None:
    with suppress(HomerError):
        assert parse_schedule(name, table).options is not None


def test_prefect_yaml_names_every_flow_and_turns_none_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from inspect import signature

    import yaml
    from prefect.flows import load_flow_from_entrypoint
    from prefect.utilities.templating import apply_values

    root, pool = Path(__file__).parents[2], work_pool_name("ab" * 16)
    monkeypatch.setenv("HOMER_POOL", pool)
    output = apply_values(yaml.safe_load((root / "prefect.yaml").read_text()), {})
    places = {kind.flow.replace(".", "/").rpartition("/")[::2] for kind in KINDS}
    places.add(("flows/schedules/runs", "ingest"))
    found = set()
    for one in output["deployments"]:
        file, _, name = one["entrypoint"].partition(":")
        found.add((file.removesuffix(".py"), name))
        flow: Any = load_flow_from_entrypoint(f"{root / file}:{name}", use_placeholder_flow=False)
        assert set(one.get("parameters", {})) <= set(signature(flow.fn).parameters)
        assert not any(schedule["active"] for schedule in one.get("schedules", []))
        assert one["work_pool"] == {"name": pool}
        assert one["name"].endswith(f"@{pool}")
    assert found == places


# When a schedule runs, as people write it: read, and told back in words that are read again.


@pytest.mark.parametrize(
    ("text", "when", "words"),
    [
        ("every 5 minutes", When(every_s=300), "every 5 minutes"),
        ("every 90m", When(every_s=5400), "every 90 minutes"),
        ("every 30 s", When(every_s=30), "every 30 seconds"),
        ("Every  hour", When(every_s=3600), "every hour"),
        ("every 48 hours", When(every_s=172_800), "every 2 days"),
        ("every day", When(every_s=86_400), "every day"),
        ("daily 3:30", When(cron="30 3 * * *"), "daily 03:30"),
        ("daily at 23:05", When(cron="5 23 * * *"), "daily 23:05"),
        ("Sunday 00:00", When(cron="0 0 * * 0"), "sunday 00:00"),
        ("saturday 04:10", When(cron="10 4 * * 6"), "saturday 04:10"),
        ("*/5  8-18 * * 1-5", When(cron="*/5 8-18 * * 1-5"), "*/5 8-18 * * 1-5"),
    ],
)
def test_what_people_write_is_read_and_told_back(text: str, when: When, words: str) -> None:
    assert parse_when(text) == when
    assert str(when) == words


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "every", "every -5 minutes", "every 5 weeks", "every 1000000000000 days"),
        *("daily 24:00", "daily 3:60", "daily", "someday 03:00", "* * * *"),
        *("every 0 minutes", "every 9 seconds", "every 400 days"),
    ],
)
def test_what_says_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_when(text)


@given(st.integers(MIN_INTERVAL_S, MAX_INTERVAL_S).map(lambda seconds: When(every_s=seconds)))
def test_an_interval_comes_back_as_it_was(when: When) -> None:
    assert parse_when(str(when)) == when


@given(st.text(max_size=40))
def test_no_text_does_harm(text: str) -> None:
    try:
        when = parse_when(text)
    except InputError:
        return
    assert parse_when(str(when)) == when


@pytest.mark.parametrize("output", [{}, {"every_s": 60, "cron": "* * * * *"}, {"every_s": 9}])
def test_there_is_one_way_to_say_when(output: dict[str, int | str]) -> None:
    with pytest.raises(ValidationError):
        When.model_validate(output)
