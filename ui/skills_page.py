"""The skills page: learned skills, their sources, uses and success, and banning them."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from domain.skills import Skill
from domain.words import counted, format_number, marked, marked_each, translate
from evals.example import example_skills
from flows.learning import learn_in_batches
from flows.workspace import open_workspace
from library.skills import (
    SkillUseRecord,
    page_of_sources,
    page_of_uses,
    policy_lines,
    skill_use_record,
    strategy_line,
)
from skills.learn import count_waiting
from skills.library import find_skill, list_skills_page, set_banned, versions_of
from store.database import Store
from store.queries.learning import Use
from ui import charts
from ui.answer import VERDICTS
from ui.app_state import page_state
from ui.formatting import escape_markdown, format_date, format_day
from ui.navigation import (
    PAGE_SIZE,
    page_link,
    paginated,
    show_empty,
    text_param,
    update_address_bar,
)

FIELDS = marked_each("day", "month", "given", "judged", "right", "share right")
"""Fields of the charts, which are headings of their numbers."""

QUESTIONS_PER_PAGE = 10
"""Questions per page, in the lists of uses and of sources."""

LEARNED = "learned"
"""Session key of what was learned, which is shown once."""

STATES = {True: marked("banned"), False: marked("in use")}


def skills_page() -> None:
    """Draw the skill that the address names, else the list of skills."""
    st.title(translate("Skills"))
    update_address_bar()
    if text_param("skill"):
        _show_skill()
    elif text_param("example"):
        page_link("skills", translate("← All skills"))
        _show_example()
    else:
        _show_skills()


def _show_skills() -> None:
    store = page_state().store
    if learned := st.session_state.pop(LEARNED, ""):
        st.toast(escape_markdown(learned), icon=":material/check:", duration="long")
    query = (
        st.text_input(translate("Search names and descriptions"), key="q", bind="query-params")
        or ""
    )
    count = count_waiting(store)
    if count:
        with st.container(horizontal=True, vertical_alignment="center", key="waiting"):
            st.write(
                translate("{answers} not learned from yet.").format(
                    answers=counted(count, "judged answer")
                )
            )
            if st.button(translate("Learn from them"), type="primary", key="learn"):
                with (
                    st.spinner(translate("Learning ...")),
                    open_workspace(page_state().profile) as workspace,
                ):
                    batches = list(learn_in_batches(workspace))
                written = sum(len(batch.written) for batch in batches)
                answers = counted(sum(batch.answers for batch in batches), "answer")
                st.session_state[LEARNED] = translate("Learned from {answers}: {skills}.").format(
                    answers=answers, skills=counted(written, "skill")
                )
                st.rerun()
    skills = paginated(lambda start: list_skills_page(store, start, PAGE_SIZE, query))
    if not skills:
        if query:
            st.write(translate("No skill matches."))
        else:
            show_empty(
                translate(
                    "No skill was learned yet. Ask questions and say which answers are right; then "
                    "learn from them here."
                ),
                translate("Ask a question"),
                "ask",
            )
            _show_example()
        return
    for entry in skills:
        skill = entry.skill
        with st.container(border=True, key=f"skill_{skill.name}"):
            page_link("skills", escape_markdown(skill.name), skill=skill.name)
            st.write(escape_markdown(skill.description))
            uses = translate("used for {questions}").format(
                questions=counted(entry.uses, "question")
            )
            st.caption(
                escape_markdown(f"{_facts(skill)}, {uses}, {translate(STATES[entry.banned])}")
            )
    page_link("skills", translate("See an example"), example=1)


def _show_example() -> None:
    """Draw the example skills, apart from the skills of the library."""
    example = example_skills()
    st.header(translate("Example"), anchor=False)
    st.write(
        escape_markdown(
            translate(
                "These skills were learned by Homer's own evaluation, from {answers} to "
                "questions of the data set {dataset}, with rules instead of a language model. "
                "They are no skills of your library: no question is given them."
            ).format(answers=counted(example.answers, "judged answer"), dataset=example.dataset)
        )
    )
    for skill in example.skills:
        with st.container(border=True, key=f"example_{skill.name}"):
            st.subheader(escape_markdown(skill.name), anchor=False)
            st.caption(escape_markdown(_facts(skill)))
            _show_advice(skill)


def _facts(skill: Skill) -> str:
    return translate("version {version}, topic {topic}, {tone}").format(
        version=skill.version, topic=translate(skill.topic), tone=translate(skill.tone)
    )


def _show_skill() -> None:
    store = page_state().store
    page_link("skills", translate("← All skills"))
    entry = find_skill(store, text_param("skill"))
    st.header(escape_markdown(entry.skill.name), anchor=False)
    st.caption(escape_markdown(f"{_facts(entry.skill)}, {translate(STATES[entry.banned])}"))
    left, right = st.columns([3, 2])
    with left:
        _show_advice(entry.skill)
        versions = versions_of(store, entry.skill.name)[:-1]
        if versions:
            with st.expander(translate("Earlier versions: {count}").format(count=len(versions))):
                for skill in reversed(versions):
                    st.markdown(translate("**Version {version}**").format(version=skill.version))
                    _show_advice(skill)
    with right:
        name = entry.skill.name
        if entry.banned:
            st.warning(translate("This skill is banned: it is not used for any question."))
            if st.button(translate("Unban it"), key="unban"):
                set_banned(store, name, banned=False)
                st.rerun()
        else:
            st.write(translate("It is used for questions that match its description and triggers."))
            if st.button(
                translate("Ban it"),
                key="ban",
                help=translate("Stop using {name}").format(name=name),
            ):
                set_banned(store, name, banned=True)
                st.rerun()
    _show_record(skill_use_record(store, entry.skill.name))
    _show_questions(
        store, translate("Learned from"), page_of_sources, entry.skill.name, "sources", _NO_SOURCES
    )
    _show_questions(store, translate("Used for"), page_of_uses, entry.skill.name, "uses", _NO_USES)


_NO_SOURCES = marked(
    "None on record: it was written by hand, or the answers were deleted with their videos."
)
_NO_USES = marked("It was not used yet.")


def _show_advice(skill: Skill) -> None:
    st.markdown(
        translate("**For:** {description}").format(description=escape_markdown(skill.description))
    )
    if skill.triggers:
        st.markdown(
            translate("**Triggers:** {words}").format(
                words=escape_markdown(", ".join(skill.triggers))
            )
        )
    st.markdown(translate("**Advice:**"))
    st.markdown("\n".join(f"- {escape_markdown(line)}" for line in skill.instructions))
    policy = list(policy_lines(skill.policy))
    if policy:
        st.markdown(
            translate("**Without a language model:** {policy}").format(
                policy=escape_markdown("; ".join(policy))
            )
        )
    if chosen := strategy_line(skill.policy):
        st.markdown(translate("**Strategy:** {chosen}").format(chosen=escape_markdown(chosen)))


def _show_record(record: SkillUseRecord) -> None:
    st.header(translate("Use and success"), anchor=False)
    if not record.given:
        st.caption(translate(_NO_USES))
        return
    rows = list[dict[str, str | int | float]]()
    for tally in record.tallies:
        day = f"{tally.start:%Y-%m}" if record.unit == "month" else f"{tally.start:%Y-%m-%d}"
        row: dict[str, str | int | float] = {
            record.unit: day,
            "given": tally.given,
            "judged": tally.judged,
            "right": tally.right,
        }
        rows.append(row | ({"share right": tally.right / tally.judged} if tally.judged else {}))
    left, right = st.columns(2)
    with left:
        first, last = record.tallies[0].start, record.tallies[-1].start
        uses_caption = translate(
            "Used for {questions} between {first} and {last}, shown by {unit}."
        ).format(
            questions=counted(record.given, "question"),
            first=format_day(first),
            last=format_day(last),
            unit=translate(record.unit),
        )
        charts.column_chart(uses_caption, rows, record.unit, "given", "used")
    with right:
        judged = [row for row in rows if row["judged"]]
        if judged:
            success_caption = translate(
                "{right} of {judged} judged answers were right ({share}). Of comparable "
                "answers without it {expected} are: same type, profile and run."
            ).format(
                right=record.right,
                judged=record.judged,
                share=format_number(record.right / record.judged, ".0%"),
                expected=format_number(record.expected / record.judged, ".0%"),
            )
            charts.share_chart(success_caption, judged, record.unit, "share right", "went")
        else:
            st.caption(translate("No answer to these questions was judged yet."))
    charts.numbers_table(
        [
            {
                name: (f"{value:.0%}" if isinstance(value, float) else str(value))
                for name, value in row.items()
            }
            for row in rows
        ]
    )


def _show_questions(
    store: Store,
    heading: str,
    load_page: Callable[[Store, str, int, int], tuple[list[Use], int]],
    name: str,
    parameter: str,
    empty: str,
) -> None:
    st.header(heading, anchor=False)
    uses = paginated(
        lambda start: load_page(store, name, start, QUESTIONS_PER_PAGE),
        parameter,
        QUESTIONS_PER_PAGE,
    )
    if not uses:
        st.caption(translate(empty))
    for use in uses:
        key = f"{parameter}_{use.trajectory}"
        with st.container(horizontal=True, vertical_alignment="center", key=key):
            page_link("trajectory", escape_markdown(use.question), trajectory=use.trajectory)
            st.caption(f"{format_date(use.at)}, {translate(VERDICTS[use.right])}")
