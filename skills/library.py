"""The skill library: what is kept, put in, taken out of use, and given to questions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from domain.base import Frozen
from domain.errors import InputError, NotFound
from domain.skills import RoutedSkill, Skill
from skills.review import review
from skills.route import Vectors, route
from store.queries import skills as stored
from store.queries.learning import made_of

if TYPE_CHECKING:
    from models.ports import TextEmbedder
    from store.database import Store


class Models(Protocol):
    """What the library needs of a profile's models."""

    @property
    def text(self) -> TextEmbedder:
        """Sentence embeddings."""


class KeptSkill(Frozen):
    """A skill of the library: its latest version, and how often questions were given it."""

    skill: Skill
    banned: bool
    uses: int


def list_skills(store: Store) -> list[KeptSkill]:
    """All skills by name, each in its latest version."""
    with store.begin() as session:
        uses = stored.uses(session)
        return [
            KeptSkill(skill=one.skill, banned=one.banned, uses=uses.get(one.skill.name, 0))
            for one in stored.latest(session)
        ]


def page_of_skills(
    store: Store, offset: int, limit: int, words: str = ""
) -> tuple[list[KeptSkill], int]:
    """A page of the skills by name, and how many there are; ``words``: that are about them."""
    with store.begin(snapshot=True) as session:
        found = stored.latest(session, offset, limit, words)
        uses = stored.uses(session, [one.skill.name for one in found])
        total = stored.count_skills(session, words)
    kept = [
        KeptSkill(skill=one.skill, banned=one.banned, uses=uses.get(one.skill.name, 0))
        for one in found
    ]
    return kept, total


def find_skill(store: Store, name: str) -> KeptSkill:
    """One skill.

    Raises:
        NotFound: there is none of that name.
    """
    with store.begin(snapshot=True) as session:
        found = stored.find(session, name)
        uses = stored.uses(session, [name]) if found else {}
    if found is None:
        raise NotFound(f"there is no skill {name!r}: 'homer skills' lists them")
    return KeptSkill(skill=found.skill, banned=found.banned, uses=uses.get(name, 0))


def versions_of(store: Store, name: str) -> list[Skill]:
    """All versions of a skill, oldest first."""
    with store.begin() as session:
        return stored.versions(session, name)


def given_to(store: Store, name: str, most: int = 20) -> list[str]:
    """The latest trajectories whose question was given a skill, newest first."""
    with store.begin() as session:
        return stored.given_to(session, name, most=most)


def learned_from(store: Store, name: str) -> list[str]:
    """The trajectories that a skill was learned from; none where a person wrote it."""
    with store.begin() as session:
        return made_of(session, name)


def put_in(store: Store, skills: Sequence[Skill]) -> list[Skill]:
    """Keep skills, all or none; one whose name is known becomes its next version.

    What is the same as the latest version is left as it is.

    Returns:
        Those that are new or changed, with their versions.

    Raises:
        InputError: a skill does not pass the review; says each fault.
    """
    with store.begin() as session:
        names = stored.known_names(session)
        faults = [f"{one.name}: {fault}" for one in skills for fault in review(one, names)]
        if faults:
            raise InputError("not kept: " + "; ".join(faults))
        latest = {one.skill.name: one.skill for one in stored.latest(session)}
        fresh = []
        for one in skills:
            known = latest.get(one.name)
            made = one.model_copy(update={"version": known.version + 1 if known else 1})
            if known is None or made.model_copy(update={"version": known.version}) != known:
                stored.add(session, made)
                latest[made.name] = made
                fresh.append(made)
        return fresh


def set_banned(store: Store, name: str, *, banned: bool) -> Skill:
    """Take a skill out of use, or back into it; all its versions stay.

    Raises:
        NotFound: there is none of that name.
    """
    found = find_skill(store, name)
    with store.begin() as session:
        stored.set_banned(session, name, banned=banned)
    return found.skill


class SkillLibrary:
    """Gives questions their skills; what skills are about is embedded once a process."""

    def __init__(self, store: Store, models: Models) -> None:
        self._store, self._models = store, models
        self._vectors: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def route(self, question: str, above: float, tokens: int) -> tuple[RoutedSkill, ...]:
        """The skills for a question; see ``skills.route.route``."""
        with self._store.begin() as session:
            usable = [one.skill for one in stored.latest(session) if not one.banned]
        if not usable:
            return ()
        with self._lock:
            rows = np.stack([self._vector(one.about) for one in usable])
            return route(self._vector(question), usable, rows, above, tokens)

    def _vector(self, text: str) -> Vectors:
        if text not in self._vectors:
            self._vectors[text] = self._models.text.embed([text])[0]
        return self._vectors[text]
