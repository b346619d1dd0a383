"""A library with a marker in every kind of content: what of it is left can be looked for.

Which kinds there are follows from the schema: every column of text, JSON or vectors is either
``STRUCTURE``, with a reason, or has the marker. A new column fails the scans until it is sorted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from pgvector.sqlalchemy import HALFVEC, VECTOR
from sqlalchemy import ARRAY, Column, LargeBinary, String, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from domain.skills import JudgedTrajectory, Signal
from flows.jobs import PREFIX
from flows.uploads import store_upload
from store.database import Store
from store.postmaster import HostIdentity
from store.queries.learning import add_observations, put_judgement
from store.tables.schema import Base, BlobRow
from tests.support import full_video
from tests.support.evaluation_rows import evaluated

MARK = "Zqwaldo"
NUMBER = 1234
"""In vectors, as the marker is in texts: halves hold it exactly."""

FILM = f"a film of {MARK}".encode()
VIDEO = hashlib.sha256(FILM).hexdigest()[:16]
"""The video's id, which is the digest of its file."""

STRUCTURE = {
    "names of rows, that others refer to": """
        library.id videos.id clips.video_id keyframes.video_id identities.video_id
        sightings.video_id utterances.video_id screen_texts.video_id objects.video_id
        character_names.video_id character_names.act
        corrections.video_id corrections.act identity_statements.video_id
        memories.video_id
        segments.video_id edges.video_id patches.video_id blobs.video_id
        trajectory_videos.video_id trajectory_videos.trajectory_id trajectories.id
        trajectory_events.trajectory_id judgements.trajectory_id observations.trajectory_id
        model_calls.video_id model_calls.trajectory_id eval_results.video_id
        eval_results.trajectory_id eval_results.run eval_runs.name eval_batches.run skills.name
        eval_results.question observations.skill streams.video_id stream_clips.video_id
        stream_gaps.video_id builds.video_id frames.video_id nodes.video_id entities.video_id
        relations.video_id keepers.video_id alerts.id alerts.video_id alert_clips.video_id
        alert_hits.id alert_hits.alert_id alert_hits.video_id shared_links.id
        shared_links.trajectory_id shared_links.video_id grants.video_id""",
    "digests of content, whose files and rows are looked for": """
        blobs.sha256 keyframes.blob sightings.blob frames.blob messages.hash model_calls.messages
        model_calls.request_hash""",
    "words of a fixed list, none of a video": """
        videos.state videos.profile clips.state identities.kind utterances.origin
        utterances.language memories.kind memories.source edges.relation corrections.kind
        character_names.source trajectories.state trajectories.machine trajectories.profile
        trajectory_events.kind trajectory_events.step questions.type model_calls.purpose
        model_calls.profile model_calls.model judgements.question_type observations.signal
        observations.question_type eval_results.arm eval_results.part eval_runs.state
        eval_runs.profile stream_gaps.reason builds.builder frames.builder frames.reason
        nodes.builder nodes.level entities.builder entities.type relations.builder
        relations.level keepers.builder alerts.kind alerts.delivery alert_hits.state
        alert_hits.error""",
    "names of models, and times": """
        videos.models builds.encoder builds.writers patches.writers clips.gaps frames.image_encoder
        library.text_encoder library.image_encoder library.next_text_encoder
        library.next_image_encoder""",
    "who did what to which id, by ids alone": "audit.id audit.who audit.deed audit.subject",
    "who may see what": """
        trajectories.viewer grants.grantee grants.folder group_members.group_name
        group_members.member""",
    "of no video: what a user saved to search for": "saved_searches.name saved_searches.query",
    "of no video: a digest of what a schedule found, and why it could not be watched":
        "taken.key taken.told",
    "of no video: sentences on how to search, which review keeps from naming anybody":
        "skills.payload",
    "of no video: what a run over a data set was told, and what it learned, as names and counts":
        "eval_runs.dataset eval_runs.settings eval_runs.note eval_batches.learned",
}  # fmt: skip
SHAPED: dict[str, Any] = {
    "segment_revisions.history": [{"number": 9, "label": MARK, "summary": MARK, "at_clip": 1}],
    "patches.applied": {"steps": [{"segments": [{"label": MARK}], "edges": []}], "unsettled": []},
    "clips.left_out": [MARK],
    "clips.dropped": [MARK],
    "videos.subtitles": [f"{MARK}.srt"],
    "videos.remarks": [f"the track {MARK} is not heard"],
    "patches.dropped": [{"item": "edge", "reasons": [MARK]}],
    "questions.options": [MARK],
    "corrections.outcomes": [{"number": 0, "names": [MARK]}],
}
"""JSON of which the code reads the inside."""


def contents() -> Iterator[tuple[Table, Column[Any]]]:
    """Every column that can hold content, of every table; computed ones follow from others."""
    kinds = (Text, String, JSONB, VECTOR, HALFVEC, LargeBinary)
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            kind = column.type.item_type if isinstance(column.type, ARRAY) else column.type
            if isinstance(kind, kinds) and column.computed is None:
                yield table, column


def sorted_out() -> set[str]:
    """The columns that are said to have no content."""
    return {name for names in STRUCTURE.values() for name in names.split()}


def plant(store: Store, video: str) -> str:
    """A video that has the marker wherever it can be; returns what its file was named."""
    fill(store, video)
    with store.begin() as session:
        for table, column in contents():
            name = f"{table.name}.{column.name}"
            if name not in sorted_out():
                output = f"UPDATE {table.name} SET {column.name} = CAST(:value AS {_type(column)})"  # noqa: S608
                session.execute(text(output), {"value": _value(name, column)})
    return beside(store, video)


def fill(store: Store, video: str) -> None:
    """Rows in every table, one answer that is judged and evaluated, and an image of its own."""
    full_video.fill(store, video)
    full_video.ask(store, "t1", f"what of {MARK}?", video)
    judged = JudgedTrajectory(trajectory="t1", question_type="why", right=False)
    own = store.blobs.put(f"a crop of {MARK}".encode())
    with store.begin() as session:
        put_judgement(session, judged)
        add_observations(session, judged, [Signal.ERROR])
        session.add(BlobRow(video_id=video, sha256=own, size=9))
        for rows in ("sightings", "keyframes", "frames"):
            output = f"UPDATE {rows} SET blob = :own WHERE blob IS NOT NULL"  # noqa: S608
            session.execute(text(output), {"own": own})
    evaluated(store, "t1", video)


def beside(store: Store, video: str) -> str:
    """What lies beside the database: the app's copy of the file, and the log of its watching."""
    path = store_upload(store.home, f"{MARK}.mp4", FILM)
    with store.begin() as session:
        where = {"path": str(path), "id": video}
        session.execute(text("UPDATE videos SET path = :path WHERE id = :id"), where)
    job = {"pid": 0, "began": 0.0, "sources": [where["path"]], "arguments": []}
    job["where"] = str(HostIdentity.here())
    (store.home.run / f"{PREFIX}0.json").write_text(json.dumps(job))
    (store.home.logs / f"{PREFIX}0.log").write_text(f"{MARK} is watched")
    return where["path"]


def _type(column: Column[Any]) -> str:
    special = {JSONB: "jsonb", LargeBinary: "bytea"}
    return special.get(type(column.type)) or str(column.type.compile())


def _value(name: str, column: Column[Any]) -> Any:
    if isinstance(column.type, VECTOR | HALFVEC):
        return f"[{NUMBER},1,1]"
    if isinstance(column.type, JSONB):
        return json.dumps(SHAPED.get(name, {"said": MARK}))
    if isinstance(column.type, LargeBinary):
        return MARK.encode()
    return [MARK] if isinstance(column.type, ARRAY) else f"{MARK} is here"


def traces(store: Store) -> set[str]:
    """Where the marker is still: tables and columns, and files of the data directory."""
    return {*_in_tables(store), *_in_files(store)}


def _in_tables(store: Store) -> Iterator[str]:
    tables = text(
        "SELECT table_schema || '.' || table_name FROM information_schema.tables "
        "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
    )
    with store.begin() as session:
        for table in session.scalars(tables).all():
            for row in session.scalars(text(f"SELECT to_jsonb(t) FROM {table} t")):  # noqa: S608
                for column, value in row.items():
                    output = json.dumps(value) if value is not None else ""
                    vector = column.endswith(("embedding", "vector")) and str(NUMBER) in output
                    if MARK.lower() in output.lower() or MARK.encode().hex() in output or vector:
                        yield f"{table.removeprefix('public.')}.{column}"


def _in_files(store: Store) -> Iterator[str]:
    root = store.home.root
    for path in root.rglob("*"):
        output = path.read_bytes() if path.is_file() else b""
        if MARK.lower().encode() in output.lower() or MARK in path.name:
            yield str(path.relative_to(root).parts[0])
