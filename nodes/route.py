"""Route: gives the question the skills for questions like it (section 3)."""

from __future__ import annotations

from agent.run_context import RunContext
from agent.state import State, question_of
from domain.skills import RoutedSkill
from domain.trajectory import SkillsRouted


def route(state: State, context: RunContext) -> State:
    """Look up skills if there is a library; a replayed run takes its recorded ones.

    The skill by which the strategy was chosen comes first.
    """
    skills = context.recorder.replay_source.routed()
    if skills is None:
        skills = _with_chosen(context.recorder.chosen_by, _routed(state, context))
    if skills is not None:
        context.recorder.add(SkillsRouted(skills=skills))
    return {"next": "plan"}


def _with_chosen(
    chosen_by: RoutedSkill | None, routed: tuple[RoutedSkill, ...] | None
) -> tuple[RoutedSkill, ...] | None:
    return routed if chosen_by is None else (chosen_by, *(routed or ()))


def _routed(state: State, context: RunContext) -> tuple[RoutedSkill, ...] | None:
    settings = context.settings
    if context.skills is None or not settings.skills:
        return None
    text = question_of(state).text
    return context.skills.route(text, settings.skill_cosine, settings.skill_tokens)
