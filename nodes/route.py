"""Route: the question is given the skills that are for questions like it (section 3)."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import State, question_of
from domain.skills import RoutedSkill
from domain.trajectory import SkillsRouted


def route(state: State, desk: RunContext) -> State:
    """Look for skills, where there is a library; a run from a record takes those that it had."""
    skills = desk.recorder.past.routed()
    if skills is None:
        skills = _routed(state, desk)
    if skills is not None:
        desk.recorder.add(SkillsRouted(skills=skills))
    return {"next": "plan"}


def _routed(state: State, desk: RunContext) -> tuple[RoutedSkill, ...] | None:
    settings = desk.settings
    if desk.skills is None or not settings.skills:
        return None
    text = question_of(state).text
    return desk.skills.route(text, settings.skill_cosine, settings.skill_tokens)
