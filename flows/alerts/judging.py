"""Judges remembered clips by the alerts, and records what answers them.

A clip that is stored while there is an alert about its video is noted in the same transaction, and
struck off in the transaction that records its events. So each clip is judged once, whatever is
killed in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from domain.alerts import Alert, AlertKind
from domain.people import Character
from domain.time import TimeSpan
from flows.workspace import Workspace
from models.text_endpoint import recorded_embeddings
from people.corrected import characters_at
from people.model_calls import record_call
from retrieval.line_set import Matrix
from retrieval.people_in_query import line_text, view_people
from retrieval.standing import StandingQuestions
from store.queries.alerts import (
    EmbeddedLine,
    Match,
    SeenFace,
    WaitingClip,
    add_events,
    faces_of_clip,
    lines_of_clip,
    list_alerts,
    take_clip,
)
from store.queries.encoders import encoder_on_record


@dataclass(frozen=True)
class JudgedClip:
    """What is known of a clip: its lines with their texts, its faces, and who they are."""

    video: str
    clip: int
    lines: tuple[EmbeddedLine, ...]
    texts: tuple[str, ...]
    faces: tuple[SeenFace, ...]
    people: dict[int, Character]
    encoder: str | None


class AlertJudge:
    """Judges clips by alerts, with the models of a profile."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._questions: tuple[tuple[str, ...], StandingQuestions] | None = None

    def judge(self, waiting: WaitingClip) -> int:
        """Judge a clip that waits; return how many events were recorded.

        Requests to an embeddings endpoint are on record with the clip.

        Raises:
            HomerError: the database or a model failed; the clip waits on.
        """
        store = self._workspace.store
        with store.begin(snapshot=True) as session:
            alerts = list_alerts(session, waiting.video)
        with recorded_embeddings(partial(record_call, store, waiting.video, waiting.clip)):
            matches = list(self.matches(alerts, waiting.video, waiting.clip))
        with store.begin() as session:
            if not take_clip(session, waiting):
                return 0
            current = {alert.id for alert in list_alerts(session, waiting.video)}
            kept = [match for match in matches if match.alert.id in current]
            return add_events(session, waiting, kept)

    def model_answers(self, waiting: WaitingClip) -> bool:
        """Check whether the text model answers at all: if not, the clip is not to blame."""
        store = self._workspace.store
        try:
            with recorded_embeddings(partial(record_call, store, waiting.video, waiting.clip)):
                self._workspace.toolbox.text.embed(["a question"])
        except Exception:  # noqa: BLE001 - models and their servers have errors of their own
            return False
        return True

    def matches(self, alerts: Sequence[Alert], video: str, clip: int) -> Iterator[Match]:
        """Yield what answers these alerts in a clip: lines and faces."""
        known = self._read(video, clip)
        yield from (match for match, alert in self.closest(alerts, known) if _answers(match, alert))
        for alert in alerts:
            if alert.kind is not AlertKind.TEXT:
                yield from _face_matches(alert, known)

    def closest(self, alerts: Sequence[Alert], known: JudgedClip) -> Iterator[tuple[Match, Alert]]:
        """Yield the line of a clip that is closest to each alert about a text."""
        asked = [alert for alert in alerts if alert.kind is AlertKind.TEXT]
        if not asked or not known.lines:
            return
        questions = self._standing(tuple(alert.question for alert in asked))
        thresholds = [alert.threshold for alert in asked]
        found = questions.closest_lines(known.texts, self._vectors(known), thresholds)
        for alert, one in zip(asked, found, strict=True):
            line = known.lines[one.line].line
            span = TimeSpan.of(line.start_ms, max(line.start_ms, line.end_ms))
            yield Match(alert, span, min(1.0, one.score), memory=line.id), alert

    def best(self, alert: Alert, video: str, clip: int) -> Match | None:
        """Return the closest that a clip comes to an alert, answered or not."""
        known = self._read(video, clip)
        if alert.kind is AlertKind.TEXT:
            return next((match for match, _ in self.closest([alert], known)), None)
        return next(_face_matches(alert, known), None)

    def _read(self, video: str, clip: int) -> JudgedClip:
        with self._workspace.store.begin(snapshot=True) as session:
            rows = characters_at(session, video, clip)
            lines = tuple(lines_of_clip(session, video, clip))
            faces = tuple(faces_of_clip(session, video, clip))
            own = encoder_on_record(session, video)
        names = view_people({video: [row.character for row in rows]}).names(video)
        return JudgedClip(
            video,
            clip,
            lines,
            tuple(line_text(line.line, names) for line in lines),
            faces,
            {identity: row.character for row in rows for identity in row.members},
            own,
        )

    def _standing(self, questions: tuple[str, ...]) -> StandingQuestions:
        if self._questions is None or self._questions[0] != questions:
            tools = self._workspace.toolbox
            made = StandingQuestions(questions, tools.text, tools.reranker)
            self._questions = (questions, made)
        return self._questions[1]

    def _vectors(self, known: JudgedClip) -> Matrix:
        """Return the vectors of a clip's lines, (L, D), of the profile's encoder."""
        text = self._workspace.toolbox.text
        stored = [line.vector for line in known.lines if line.vector is not None]
        ours = all((line.encoder or known.encoder) == text.name for line in known.lines)
        if ours and len(stored) == len(known.lines):
            return np.stack([np.asarray(_numbers(vector), np.float32) for vector in stored])
        return text.embed(list(known.texts))


def _numbers(vector: object) -> object:
    """Return the numbers of a vector as the driver returns it."""
    to_list = getattr(vector, "to_list", None)
    return vector if to_list is None else to_list()


def _answers(match: Match, alert: Alert) -> bool:
    return match.score >= alert.threshold


def _face_matches(alert: Alert, known: JudgedClip) -> Iterator[Match]:
    """Yield the faces of a clip that an alert waits for, by when they were first seen.

    At most one of them becomes an event: the first that had none within its debounce time.
    """
    for face in known.faces:
        person = known.people.get(face.identity)
        if _is_wanted(alert, person):
            span = TimeSpan.of(face.start_ms, max(face.start_ms, face.end_ms))
            yield Match(alert, span, 1.0, identity=face.identity)


def _is_wanted(alert: Alert, person: Character | None) -> bool:
    if alert.kind is AlertKind.UNKNOWN_FACE:
        return person is None or person.name is None
    if person is None:
        return False
    names = {name.casefold() for name in (person.name, *person.aliases) if name}
    return alert.question.casefold() in names | {tag.strip("<>") for tag in person.tags}
