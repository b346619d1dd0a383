"""Judges remembered clips and segments by the alerts, and records what answers them.

A clip that is stored while there is an alert about its video is noted in the same transaction, and
struck off in the transaction that records its hits. So each clip is judged once, whatever is
killed in between. Segments are written after their clips, and are noted and judged by themselves.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from domain.alerts import Alert, AlertKind, DeliveryState, Hit
from domain.people import Character
from domain.sentences import split_sentences
from domain.time import TimeSpan
from flows.workspace import Workspace
from models.text_endpoint import recorded_embeddings
from people.model_transactions import record_call
from retrieval.lines import Matrix
from retrieval.people_in_query import line_text, view_people, with_current_names, with_names
from retrieval.relevance import StandingQuestions
from store.queries.alerts import (
    WaitingClip,
    add_hits,
    count_attempt,
    described_frames,
    faces_of_clip,
    lines_of_clip,
    list_alerts,
    take_clip,
    waiting_clips,
)
from store.queries.characters import characters_at
from store.queries.encoders import encoders_of_library
from store.queries.outline import segments_written

ATTEMPTS = 5
"""How often a clip is judged at most, if a model fails with it but answers otherwise."""

_LOG = logging.getLogger(f"homer.{__name__}")


class Candidate(NamedTuple):
    """What may answer an alert, and when: a text, with its vector (D,), or a face.

    ``shown_by`` is the field of a hit for it and its id.
    """

    shown_by: dict[str, int]
    span: TimeSpan
    text: str = ""
    vector: object = None
    person: Character | None = None


class AlertJudge:
    """Judges clips by alerts, with the models of a profile."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._questions: tuple[tuple[str, ...], StandingQuestions] | None = None

    def judge_waiting(self) -> tuple[list[str], int]:
        """Judge the clips that wait; return the ids of hits, and how many clips were not judged.

        A clip with which a model fails waits for the next call, and is given up after ``ATTEMPTS``.
        Where the text model does not answer at all, all clips wait, and no attempt counts.

        Raises:
            DatabaseError: the database is gone.
        """
        recorded = list[str]()
        with self._workspace.store.begin() as session:
            waiting = waiting_clips(session, ATTEMPTS)
        for number, clip in enumerate(waiting):
            recorder = partial(record_call, self._workspace.store, clip.video, clip.clip)
            with recorded_embeddings(recorder):
                try:
                    recorded += self._judge(clip)
                except Exception as error:  # noqa: BLE001 - one odd clip must not stop the others
                    fields = {"error": type(error).__name__, "video": clip.video, "clip": clip.clip}
                    _LOG.warning("a clip was not judged", extra={"homer": fields})
                    try:
                        self._workspace.toolbox.text.embed(["a question"])
                    except Exception:  # noqa: BLE001 - servers of models have errors of their own
                        return recorded, len(waiting) - number
                    with self._workspace.store.begin() as session:
                        count_attempt(session, clip)
        return recorded, 0

    def best(self, alert: Alert, video: str, clip: int) -> Hit | None:
        """Return the closest that a clip, or a segment written after it, comes to an alert."""
        found = [
            hit
            for segments in (False, True)
            for candidates in self._read(WaitingClip(video, clip, segments))
            for _, hit in self._hits([alert], video, clip, candidates)
        ]
        return max(found, key=lambda hit: hit.score, default=None)

    def _judge(self, waiting: WaitingClip) -> list[str]:
        with self._workspace.store.begin(snapshot=True) as session:
            alerts = list_alerts(session, waiting.video)
        found = [
            [*self._hits(alerts, waiting.video, waiting.clip, candidates)]
            for candidates in self._read(waiting)
        ]
        with self._workspace.store.begin() as session:
            if not take_clip(session, waiting):
                return []
            current = {alert.id for alert in list_alerts(session, waiting.video)}
            kept = (
                [
                    (alert, hit)
                    for alert, hit in hits
                    if alert.id in current and hit.score >= alert.threshold
                ]
                for hits in found
            )
            return [hit for hits in kept for hit in add_hits(session, hits)]

    def _read(self, waiting: WaitingClip) -> list[list[Candidate]]:
        """Read a clip, or the segments that were written after it, each to be judged by itself."""
        video, clip = waiting.video, waiting.clip
        with self._workspace.store.begin(snapshot=True) as session:
            rows = characters_at(session, video, clip)
            names = view_people({video: [row.character for row in rows]}).names(video)
            if waiting.segments:
                # A whole summary has words of many moments: together they would answer what no
                # moment does. So its label and each sentence of it are judged.
                return [
                    [
                        Candidate({"segment": one.id}, one.span, with_current_names(told, names))
                        for part in (one.label, *split_sentences(one.summary))
                        if (told := part.strip())
                    ]
                    for one in segments_written(session, video, clip)
                ]
            lines = lines_of_clip(session, video, clip)
            frames = described_frames(session, video, clip)
            faces = faces_of_clip(session, video, clip)
        # A clip may have no line about each person and thing in view: keyframes show them.
        read = [("memory", line_text(one[0], names), one) for one in lines]
        read += [("keyframe", with_names(one[0].text, names), one) for one in frames]
        texts = [
            Candidate(
                {field: line.id},
                TimeSpan.of(line.start_ms, max(line.start_ms, line.end_ms)),
                text,
                vector,
            )
            for field, text, (line, vector) in read
        ]
        people = {identity: row.character for row in rows for identity in row.members}
        seen = [
            Candidate({"identity": identity}, span, person=people.get(identity))
            for identity, span in faces
        ]
        return [texts + seen]

    def _hits(
        self, alerts: Sequence[Alert], video: str, clip: int, candidates: Sequence[Candidate]
    ) -> Iterator[tuple[Alert, Hit]]:
        """Yield each alert with its closest text, or with the faces that it waits for.

        At most one of the faces is recorded: the first that had no hit within its debounce time.
        """
        texts = [one for one in candidates if one.text]
        asked = [alert for alert in alerts if alert.kind is AlertKind.TEXT]
        closest = list[tuple[Alert, Candidate, float]]()
        if asked and texts:
            questions = tuple(alert.question for alert in asked)
            if self._questions is None or self._questions[0] != questions:
                made = StandingQuestions(
                    questions, self._workspace.toolbox.text, self._workspace.toolbox.reranker
                )
                self._questions = (questions, made)
            words, limits = [one.text for one in texts], [alert.threshold for alert in asked]
            encoder = self._workspace.toolbox.text
            with self._workspace.store.begin() as session:
                is_own = encoders_of_library(session).text == encoder.name
            vectors: Matrix
            if is_own and all(one.vector is not None for one in texts):
                vectors = np.stack([np.asarray(one.vector, np.float32) for one in texts])
            else:
                vectors = encoder.embed(words)
            found = self._questions[1].closest_lines(words, vectors, limits)
            closest += [
                (alert, texts[line], min(1.0, score))
                for alert, (line, score) in zip(asked, found, strict=True)
            ]
        closest += [
            (alert, one, 1.0)
            for alert in alerts
            for one in candidates
            if "identity" in one.shown_by and _is_wanted(alert, one.person)
        ]
        for alert, shown, score in closest:
            waits = alert.delivery is not None
            yield (
                alert,
                Hit(
                    alert=alert.name,
                    kind=alert.kind,
                    question=alert.question,
                    video=video,
                    clip=clip,
                    span=shown.span,
                    score=score,
                    state=DeliveryState.WAITING if waits else DeliveryState.RECORDED,
                    **shown.shown_by,
                ),
            )


def _is_wanted(alert: Alert, person: Character | None) -> bool:
    if alert.kind is AlertKind.UNKNOWN_FACE:
        return person is None or person.name is None
    if person is None or alert.kind is AlertKind.TEXT:
        return False
    names = {name.casefold() for name in (person.name, *person.aliases) if name}
    return alert.question.casefold() in names | {tag.strip("<>") for tag in person.tags}
