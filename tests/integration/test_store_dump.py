"""The dump is canonical: it holds everything that was learned and nothing of where or when."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, select, text, update
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.types import ARRAY, Boolean, Float, Integer, Text

from store.database import Store, open_store
from store.home import Home
from store.queries.backup import canonical_record, dump_video
from store.tables.schema import Base
from tests.support.full_suite import sample
from tests.support.full_video import ask, fill

A, B = "a" * 16, "b" * 16

# What a dump leaves out on purpose, by table; "*" is the whole table.
LEFT_OUT = {
    "videos": {"path", "created_at"},
    "clips": {"attempts", "budget", "dropped", "left_out", "seconds", "updated_at"},
    "memories": {"words"},
    "keyframes": {"likeness_vector"},
    "character_names": {"act"},
    "corrections": {"made_at"},
    "builds": {"built_at"},
    "model_calls": {"ms", "called_at", "trajectory_id"},
    **{t: {"*"} for t in ("library", "questions", "trajectories", "trajectory_videos")},
    **{t: {"*"} for t in ("trajectory_events", "messages")},
    **{t: {"*"} for t in ("skills", "judgements", "observations", "audit", "taken")},
    **{t: {"*"} for t in ("shared_links", "saved_searches")},
    **{t: {"*"} for t in ("grants", "group_members", "enforced_rights")},
    **{t: {"*"} for t in ("eval_runs", "eval_results", "eval_batches")},
    **{t: {"*"} for t in ("alerts", "alert_clips", "alert_hits")},
    **{t: {"*"} for t in ("streams", "stream_clips", "stream_gaps")},
}


def dumped(store: Store, video_id: str = A) -> list[str]:
    with store.begin(snapshot=True) as session:
        return list(dump_video(session, video_id))


def columns() -> list[tuple[str, str]]:
    found = []
    for table in Base.metadata.sorted_tables:
        left = LEFT_OUT.get(table.name, set()) | {"id", "video_id"}
        if "*" not in left:
            found += [
                (table.name, column.name) for column in table.columns if column.name not in left
            ]
    return found


def one_a_table() -> list[tuple[str, str]]:
    """The last column of each table, for the short suite."""
    return list({table: (table, name) for table, name in columns()}.values())


@pytest.fixture(scope="module")
def module_store(
    postgres: Any, tmp_path_factory: pytest.TempPathFactory, make_database: Callable[[], str]
) -> Any:
    with open_store(Home(tmp_path_factory.mktemp("dumped")).make(), make_database()) as opened:
        fill(opened, A)
        with opened.begin() as session:
            # An encoder shows where it is another than the one on record.
            session.execute(text('UPDATE videos SET models = models || \'{"text": "minilm"}\''))
        yield opened


@pytest.fixture(scope="module")
def unchanged(module_store: Store) -> list[str]:
    return dumped(module_store)


def changed(column: Column[Any], old: Any) -> Any:
    kind = column.type
    if isinstance(kind, Boolean):
        return not old
    if isinstance(kind, Text):
        return f"{old}!"
    if isinstance(kind, Float):
        return old + 0.25
    if isinstance(kind, Integer):
        return 1 if old is None else old + 1000
    if isinstance(kind, JSONB):
        return {"changed": 1}
    if isinstance(kind, ARRAY):
        return [*(old or []), "9" if isinstance(kind.item_type, Text) else 9]
    return [0.5, 0.25]


@pytest.mark.parametrize(("table_name", "name"), sample(one_a_table(), columns()))
def test_every_learned_value_shows_in_the_dump(
    module_store: Store, unchanged: list[str], table_name: str, name: str
) -> None:
    table = Base.metadata.tables[table_name]
    column = table.columns[name]
    keys = list(table.primary_key.columns)
    with module_store.begin() as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))
        row = session.execute(select(table).order_by(*keys).limit(1)).mappings().one()
        value = _other_row(session, column, row[name]) or changed(column, row[name])
        here = [key == row[key.name] for key in keys]
        session.execute(update(table).where(*here).values({name: value}))
        after = list(dump_video(session, A))
        session.rollback()
    assert after != unchanged


def _other_row(session: Any, column: Column[Any], old: Any) -> Any:
    """For a reference: another row of the same table."""
    for key in column.foreign_keys:
        referred = key.column
        query = select(referred).where(referred != old) if old is not None else select(referred)
        return session.execute(query.order_by(referred.desc()).limit(1)).scalar()
    return None


def test_other_ids_and_times_dump_equal_bytes(home: Home, make_database: Callable[[], str]) -> None:
    with open_store(home, make_database()) as one, open_store(home, make_database()) as other:
        fill(one, A)
        fill(other, B, "something else")
        fill(other, A)
        ask(other, "t1", "why?", A)
        with other.begin() as session:
            session.execute(text("UPDATE videos SET path = '/moved', created_at = 'epoch'"))
            session.execute(
                text("UPDATE clips SET attempts = 2, seconds = 9, budget = 7, updated_at = 'epoch'")
            )
            session.execute(text("UPDATE model_calls SET ms = 1, called_at = 'epoch'"))
        assert dumped(one) == dumped(other)


def test_a_dump_names_rows_and_never_numbers_them(store: Store) -> None:
    fill(store, A)
    records = [json.loads(line) for line in dumped(store)]
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        by_kind.setdefault(record["row"], []).append(record)
    assert [r["name"] for r in by_kind["memory"][:3]] == ["memory_0_1", "memory_0_2", "memory_1_1"]
    assert by_kind["memory_link"][0] == {
        "row": "memory_link",
        "memory": "memory_0_1",
        "identity": "face_0",
    }
    assert by_kind["edge"][0]["source"] == "segment_0"
    assert [r["absorbed_into"] for r in by_kind["segment_revision"]] == [None, None, "segment_0"]
    assert by_kind["exemplar"][0]["sighting"] == "face_0_0_1"
    assert {r["identity"] for r in by_kind["utterance"]} == {None, "voice_0"}
    assert len(by_kind["clip"][0]["embedding"]) == 12
    assert not any("id" in record for record in records if record["row"] != "video")


def test_a_dump_knows_only_its_own_video(store: Store) -> None:
    fill(store, A)
    alone = dumped(store)
    fill(store, B, "another")
    assert (dumped(store), dumped(store, "c" * 16)) == (alone, [])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), values))
def test_canonical_json_is_one_line_and_loses_nothing(record: dict[str, Any]) -> None:
    line = canonical_record(record)
    assert len(line.splitlines()) == 1
    assert json.loads(line) == record
    assert canonical_record(dict(reversed(record.items()))) == line
