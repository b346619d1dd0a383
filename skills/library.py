"""The skill library: stores skills, bans them, and gives them to questions."""

from __future__ import annotations

import json
import threading
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from domain.base import Frozen, first_problem
from domain.errors import InputError, NotFound
from domain.skills import Advice, RoutedSkill, Skill
from skills.writer import review, tokens_of
from store.files import open_private
from store.queries import skills as stored
from store.queries.learning import source_questions, source_trajectories

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from models.ports import TextEmbedder
    from store.database import Store

EPSILON = 1e-12
COMPARED_QUESTIONS = 32
"""Questions of those that a skill was learned from that a question is compared with, at most."""


class Models(Protocol):
    """The models that the library needs."""

    @property
    def text(self) -> TextEmbedder:
        """Return the sentence embedder."""


class LibrarySkill(Frozen):
    """A stored skill: its latest version, and how often questions were given it.

    ``learned_from`` and ``trajectories``: answers that it was learned from, and that were given it,
    where one is shown alone.
    """

    skill: Skill
    banned: bool
    uses: int
    learned_from: tuple[str, ...] = ()
    trajectories: tuple[str, ...] = ()


def list_skills(store: Store) -> list[LibrarySkill]:
    """Return all skills by name, each in its latest version."""
    with store.begin(snapshot=True) as session:
        return _with_uses(session, stored.latest_versions(session))


def list_skills_page(
    store: Store, offset: int, limit: int, words: str = ""
) -> tuple[list[LibrarySkill], int]:
    """Return a page of the skills by name, and their total; ``words`` filters them."""
    with store.begin(snapshot=True) as session:
        rows = stored.latest_versions(session, offset, limit, words)
        return _with_uses(session, rows), stored.count_skills(session, words)


def _with_uses(session: Session, rows: Sequence[stored.LatestVersion]) -> list[LibrarySkill]:
    uses = stored.count_uses_by_skill(session, [row.skill.name for row in rows])
    return [LibrarySkill(**row._asdict(), uses=uses.get(row.skill.name, 0)) for row in rows]


def find_skill(store: Store, name: str) -> LibrarySkill:
    """Find a skill by name.

    Raises:
        NotFound: there is no skill of that name.
    """
    with store.begin(snapshot=True) as session:
        row = stored.find_skill(session, name)
        if row is None:
            raise NotFound(f"there is no skill {name!r}: 'homer skills' lists them")
        return _with_uses(session, [row])[0]


def versions_of(store: Store, name: str) -> list[Skill]:
    """Return all versions of a skill, oldest first."""
    with store.begin() as session:
        return stored.skill_versions(session, name)


def trajectories_given(store: Store, name: str, limit: int = 20) -> list[str]:
    """Return the latest trajectories whose question was given a skill, newest first."""
    with store.begin() as session:
        return stored.trajectories_given(session, name, limit=limit)


def trajectories_learned_from(store: Store, name: str) -> list[str]:
    """Return the trajectories a skill was learned from; none if a person wrote it."""
    with store.begin() as session:
        return source_trajectories(session, name)


def store_skills(store: Store, skills: Sequence[Skill]) -> list[Skill]:
    """Store skills, all or none; a known name gets a new version.

    A skill equal to its latest version is skipped.

    Returns:
        The new or changed skills, with their versions.

    Raises:
        InputError: a skill does not pass the review; says each fault.
    """
    with store.begin() as session:
        names = stored.names_of_people(session)
        faults = [f"{skill.name}: {fault}" for skill in skills for fault in review(skill, names)]
        if faults:
            raise InputError(f"not kept: {'; '.join(faults)}")
        latest = {skill.skill.name: skill.skill for skill in stored.latest_versions(session)}
        fresh = []
        for skill in skills:
            known = latest.get(skill.name)
            versioned = skill.model_copy(update={"version": known.version + 1 if known else 1})
            if known is None or versioned.model_copy(update={"version": known.version}) != known:
                stored.add_version(session, versioned)
                latest[versioned.name] = versioned
                fresh.append(versioned)
        return fresh


def set_banned(store: Store, name: str, *, banned: bool) -> Skill:
    """Ban or unban a skill; all its versions stay.

    Raises:
        NotFound: there is no skill of that name.
    """
    known = find_skill(store, name)
    with store.begin() as session:
        stored.set_banned(session, name, banned=banned)
    return known.skill


class SkillLibrary:
    """Routes skills to questions; texts are embedded once per process."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store, self._models = store, models
        self._vectors: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def route(self, question: str, above: float, tokens: int) -> tuple[RoutedSkill, ...]:
        """Return the skills for a question; see ``skills.library.route``.

        Skills that choose a strategy are not among them: they apply before it is asked.
        """
        advice = [skill for skill in self._usable() if skill.policy.strategy is None]
        return self._routed(question, advice, above, tokens)

    def route_strategies(self, question: str, above: float) -> tuple[RoutedSkill, ...]:
        """Return the skills that choose a strategy for a question, best first, without advice.

        A question is compared with their descriptions, and with the mean direction of the questions
        that each was learned from: "questions of the kind causal" is close to no question.

        Args:
            above: the cosine that a skill must exceed.
        """
        choosing = [
            skill.model_copy(update={"instructions": ()})
            for skill in self._usable()
            if skill.policy.strategy is not None
        ]
        with self._store.begin() as session:
            names = [skill.name for skill in choosing]
            learned = source_questions(session, names, COMPARED_QUESTIONS)
        return self._routed(question, choosing, above, tokens=0, learned=learned)

    def _usable(self) -> list[Skill]:
        with self._store.begin() as session:
            return [row.skill for row in stored.latest_versions(session) if not row.banned]

    def _routed(
        self,
        question: str,
        skills: Sequence[Skill],
        above: float,
        tokens: int,
        learned: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> tuple[RoutedSkill, ...]:
        if not skills:
            return ()
        with self._lock:
            asked = self._vector(question)
            nearest = list[Vectors]()
            for skill in skills:
                # A skill's description, or the questions it was learned from, if they are nearer.
                vectors = [self._vector(skill.about)]
                if texts := learned.get(skill.name):
                    mean = np.mean([self._vector(text) for text in texts], axis=0)
                    vectors.append(mean / max(float(np.linalg.norm(mean)), EPSILON))
                nearest.append(max(vectors, key=lambda vector: float(vector @ asked)))
            return route(asked, skills, np.stack(nearest), above, tokens)

    def _vector(self, text: str) -> Vectors:
        if text not in self._vectors:
            self._vectors[text] = self._models.text.embed([text])[0]
        return self._vectors[text]


Vectors = NDArray[np.float32]


def route(
    question: Vectors, skills: Sequence[Skill], vectors: Vectors, above: float, tokens: int
) -> tuple[RoutedSkill, ...]:
    """Choose the skills for a question (section 3).

    Args:
        question: its embedding, shape (D,), length 1.
        skills: those that may be used.
        vectors: their embeddings, shape (N, D), length 1, in the same order.
        above: the cosine that a skill must exceed.
        tokens: room for their instructions.
    """
    scores = [round(float(score), 6) for score in vectors @ question] if skills else []
    close = [(score, skill) for score, skill in zip(scores, skills, strict=True) if score > above]
    chosen: list[RoutedSkill] = []
    for score, skill in sorted(close, key=lambda pair: (-pair[0], pair[1].name)):
        cost = tokens_of(skill.instructions)
        if cost <= tokens:
            tokens -= cost
            advice = {name: getattr(skill, name) for name in Advice.model_fields}
            chosen.append(RoutedSkill(score=min(1.0, score), **advice))
    return tuple(chosen)


# Skill files: TOML as people write it, JSON as exported.

_SKILLS = TypeAdapter(list[Skill])
MOST_BYTES = 4 << 20


def read_skills(file: Path) -> list[Skill]:
    """Read the skills of a file, at least one.

    Raises:
        InputError: the file cannot be read, or holds no valid skills.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InputError(f"{file} is refused: skills take no more than {MOST_BYTES >> 20} MB")
        text = data.decode("utf-8-sig")
        document = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file} cannot be read as skills: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("skills"), list):
        raise InputError(f"{file} has no skills: each is a table [[skills]] with a name")
    raw = document["skills"]
    try:
        skills = _SKILLS.validate_python(raw)
    except ValidationError as error:
        raise InputError(f"{file}: skill {first_problem(error)}") from error
    names = [skill.name for skill in skills]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{file} has {repeated[0]!r} twice")
    if not skills:
        raise InputError(f"{file} has no skills in it")
    return skills


def write_skills(file: Path, skills: Sequence[Skill]) -> None:
    """Write skills so that ``read_skills`` returns the same, readable by the owner only.

    Raises:
        InputError: the file cannot be written.
    """
    data = {"skills": [skill.model_dump(mode="json") for skill in skills]}
    try:
        with open_private(file) as out:
            out.write(json.dumps(data, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from error
