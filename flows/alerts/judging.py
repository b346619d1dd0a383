"""Judges remembered clips and segments by the alerts, and records what answers them.

A clip that is stored while there is an alert about its video is noted in the same transaction, and
struck off in the transaction that records its events. So each clip is judged once, whatever is
killed in between. Segments are written after their clips, and are noted and judged by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from domain.alerts import Alert, AlertKind
from domain.memories import Segment
from domain.people import Character
from domain.time import TimeSpan
from domain.wording import split_sentences
from flows.workspace import Workspace
from models.text_endpoint import recorded_embeddings
from people.corrected import characters_at
from people.model_calls import record_call
from retrieval.line_set import Matrix
from retrieval.people_in_query import line_text, view_people, with_current_names, with_names
from retrieval.standing import StandingQuestions
from store.queries.alerts import (
    DescribedFrame,
    EmbeddedLine,
    Match,
    WaitingClip,
    add_events,
    described_frames,
    faces_of_clip,
    lines_of_clip,
    list_alerts,
    take_clip,
)
from store.queries.graph import segments_written
from store.queries.identities import AppearanceSpan


@dataclass(frozen=True)
class JudgedText:
    """A text that may answer an alert, when that is, and what shows it.

    ``shown_by`` is the field of a match for it and its id. ``vector`` (D,) was made by ``encoder``.
    """

    text: str
    span: TimeSpan
    shown_by: tuple[str, int]
    vector: object = None
    encoder: str | None = None


@dataclass(frozen=True)
class JudgedClip:
    """What is judged at once: texts, and the faces of a clip with who they are."""

    texts: tuple[JudgedText, ...]
    faces: tuple[AppearanceSpan, ...] = ()
    people: Mapping[int, Character] = field(default_factory=dict)


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
            found = [list(self._matches(alerts, known)) for known in self._read(waiting)]
        with store.begin() as session:
            if not take_clip(session, waiting):
                return 0
            current = {alert.id for alert in list_alerts(session, waiting.video)}
            kept = ([one for one in matches if one.alert.id in current] for matches in found)
            return sum(add_events(session, waiting, matches) for matches in kept)

    def model_answers(self, waiting: WaitingClip) -> bool:
        """Check whether the text model answers at all: if not, the clip is not to blame."""
        store = self._workspace.store
        try:
            with recorded_embeddings(partial(record_call, store, waiting.video, waiting.clip)):
                self._workspace.toolbox.text.embed(["a question"])
        except Exception:  # noqa: BLE001 - models and their servers have errors of their own
            return False
        return True

    def best(self, alert: Alert, video: str, clip: int) -> Match | None:
        """Return the closest that a clip, or a segment written after it, comes to an alert."""
        waiting = (WaitingClip(video, clip), WaitingClip(video, clip, segments=True))
        found = [self._best(alert, known) for one in waiting for known in self._read(one)]
        return max(filter(None, found), key=lambda match: match.score, default=None)

    def _best(self, alert: Alert, known: JudgedClip) -> Match | None:
        of_texts = (match for match, _ in self._closest([alert], known.texts))
        return next(of_texts if alert.kind is AlertKind.TEXT else _face_matches(alert, known), None)

    def _matches(self, alerts: Sequence[Alert], known: JudgedClip) -> Iterator[Match]:
        """Yield what answers these alerts: texts and faces."""
        closest = self._closest(alerts, known.texts)
        yield from (match for match, alert in closest if match.score >= alert.threshold)
        for alert in alerts:
            if alert.kind is not AlertKind.TEXT:
                yield from _face_matches(alert, known)

    def _closest(
        self, alerts: Sequence[Alert], texts: Sequence[JudgedText]
    ) -> Iterator[tuple[Match, Alert]]:
        asked = [alert for alert in alerts if alert.kind is AlertKind.TEXT]
        if not asked or not texts:
            return
        questions = self._standing(tuple(alert.question for alert in asked))
        thresholds = [alert.threshold for alert in asked]
        words = [one.text for one in texts]
        found = questions.closest_lines(words, self._vectors(texts), thresholds)
        for alert, one in zip(asked, found, strict=True):
            shown = texts[one.line]
            yield Match(alert, shown.span, min(1.0, one.score), **dict([shown.shown_by])), alert

    def _read(self, waiting: WaitingClip) -> list[JudgedClip]:
        """Read a clip, or the segments that were written after it, each to be judged by itself."""
        video, clip = waiting.video, waiting.clip
        with self._workspace.store.begin(snapshot=True) as session:
            rows = characters_at(session, video, clip)
            names = view_people({video: [row.character for row in rows]}).names(video)
            if waiting.segments:
                segments = segments_written(session, video, clip)
                return [JudgedClip(tuple(_texts_of_segment(one, names))) for one in segments]
            lines = lines_of_clip(session, video, clip)
            frames = described_frames(session, video, clip)
            faces = tuple(faces_of_clip(session, video, clip))
        texts = (*_texts_of_lines(lines, names), *_texts_of_frames(frames, names))
        people = {identity: row.character for row in rows for identity in row.members}
        return [JudgedClip(texts, faces, people)]

    def _standing(self, questions: tuple[str, ...]) -> StandingQuestions:
        if self._questions is None or self._questions[0] != questions:
            tools = self._workspace.toolbox
            made = StandingQuestions(questions, tools.text, tools.reranker)
            self._questions = (questions, made)
        return self._questions[1]

    def _vectors(self, texts: Sequence[JudgedText]) -> Matrix:
        """Return the vectors of texts, (L, D), of the profile's encoder."""
        model = self._workspace.toolbox.text
        if all(one.vector is not None and one.encoder == model.name for one in texts):
            return np.stack([np.asarray(_numbers(one.vector), np.float32) for one in texts])
        return model.embed([one.text for one in texts])


def _texts_of_lines(
    lines: Sequence[EmbeddedLine], names: Mapping[str, str]
) -> Iterator[JudgedText]:
    for line, vector, encoder in lines:
        span = TimeSpan.of(line.start_ms, max(line.start_ms, line.end_ms))
        shown_by = ("memory", line.id)
        yield JudgedText(line_text(line, names), span, shown_by, vector, encoder)


def _texts_of_frames(
    frames: Sequence[DescribedFrame], names: Mapping[str, str]
) -> Iterator[JudgedText]:
    """Yield what keyframes show: a clip may have no line about each person and thing in view."""
    for frame in frames:
        text, span = with_names(frame.description, names), TimeSpan.of(frame.time_ms, frame.time_ms)
        shown_by = ("keyframe", frame.id)
        yield JudgedText(text, span, shown_by, frame.vector, frame.encoder)


def _texts_of_segment(segment: Segment, names: Mapping[str, str]) -> Iterator[JudgedText]:
    """Yield the label and each sentence of the summary.

    A whole summary has words of many moments: together they would answer what no moment does.
    """
    for text in (segment.label, *split_sentences(segment.summary)):
        if text.strip():
            shown = with_current_names(text.strip(), names)
            yield JudgedText(shown, segment.span, ("segment", segment.id))


def _numbers(vector: object) -> object:
    to_list = getattr(vector, "to_list", None)
    return vector if to_list is None else to_list()


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
