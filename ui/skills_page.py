"""The skills page: what was learned, from which answers, how it was used, and taking it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from domain.skills import Skill
from skills.learn import count_waiting
from skills.library import LibrarySkill, find_skill, list_skills_page, set_banned, versions_of
from store.database import Store
from ui import address, chart
from ui.app_state import page_desk
from ui.faults import guarded
from ui.judging import VERDICTS
from ui.pages import link
from ui.paging import SIZE, offset_of, wanted_offset
from ui.times import moment
from ui.words import plain
from views.skill_use import (
    SkillUseRecord,
    Use,
    page_of_sources,
    page_of_uses,
    policy_lines,
    skill_use_record,
)

SHOWN = 10
"""Questions a page, of those that were given a skill and of those that it was learned from."""

STATES = {True: "banned", False: "in use"}


def skills_page() -> None:
    """One skill where the address names it, else the list of them."""
    st.title("Skills")
    address.hold()
    guarded(_one if address.told("skill") else _list)


def _list() -> None:
    store = page_desk().store
    words = st.text_input("Search names and descriptions", key="q", bind="query-params") or ""
    start = wanted_offset()
    found, total = list_skills_page(store, start, SIZE, words)
    _waiting(count_waiting(store))
    if not total:
        st.info(
            "No skill has these words."
            if words
            else "No skill was learned yet. Say of answers whether they are right, on the pages "
            "Ask and Trajectory; then in a terminal: `homer skills learn`. Or put some in: "
            "`homer skills import FILE`"
        )
        return
    offset = offset_of(total)
    if offset != start:
        found, _ = list_skills_page(store, offset, SIZE, words)
    for one in found:
        _entry(one)


def _waiting(count: int) -> None:
    if count:
        st.write(f"{count} judged answers are still to be learned from: `homer skills learn`")


def _entry(one: LibrarySkill) -> None:
    skill = one.skill
    with st.container(border=True, key=f"skill_{skill.name}"):
        link("skills", plain(skill.name), skill=skill.name)
        st.write(plain(skill.description))
        given = f"given to {one.uses} questions"
        st.caption(plain(f"{_facts(skill)}, {given}, {STATES[one.banned]}"))


def _facts(skill: Skill) -> str:
    return f"version {skill.version}, topic {skill.topic}, {skill.tone}"


def _one() -> None:
    store = page_desk().store
    link("skills", "← All skills")
    kept = find_skill(store, address.told("skill"))
    st.subheader(plain(kept.skill.name), anchor=False)
    st.caption(plain(f"{_facts(kept.skill)}, {STATES[kept.banned]}"))
    left, right = st.columns([3, 2])
    with left:
        _advice(kept.skill)
        _earlier(versions_of(store, kept.skill.name)[:-1])
    with right:
        _ban(store, kept)
    _record(skill_use_record(store, kept.skill.name))
    _questions(store, "Learned from", page_of_sources, kept.skill.name, "sources", _BY_HAND)
    _questions(store, "Given to", page_of_uses, kept.skill.name, "uses", _UNUSED)


_BY_HAND = "None on record: a person wrote it, or the answers were deleted with their videos."
_UNUSED = "No question was like it yet."


def _advice(skill: Skill) -> None:
    st.markdown(f"**For:** {plain(skill.description)}")
    if skill.triggers:
        st.markdown(f"**Triggers:** {plain(', '.join(skill.triggers))}")
    st.markdown("**What it says:**")
    st.markdown("\n".join(f"- {plain(line)}" for line in skill.instructions))
    policy = list(policy_lines(skill.policy))
    if policy:
        st.markdown(f"**Without a language model:** {plain('; '.join(policy))}")


def _earlier(versions: Sequence[Skill]) -> None:
    if versions:
        with st.expander(f"Earlier versions: {len(versions)}"):
            for skill in reversed(versions):
                st.markdown(f"**Version {skill.version}**")
                _advice(skill)


def _ban(store: Store, kept: LibrarySkill) -> None:
    name = kept.skill.name
    if kept.banned:
        st.warning("This skill is banned: no question is given it.")
        if st.button("Use it again", key="unban"):
            set_banned(store, name, banned=False)
            st.rerun()
        return
    st.write("Questions like its description and triggers are given it.")
    if st.button("Ban it", key="ban", help=f"Give {name} to no question any more"):
        set_banned(store, name, banned=True)
        st.rerun()


def _record(record: SkillUseRecord) -> None:
    st.header("Use and success", anchor=False)
    if not record.given:
        st.caption(_UNUSED)
        return
    rows = [_row(record, at) for at in range(len(record.tallies))]
    used, went = st.columns(2)
    with used:
        chart.columns(_used(record), rows, record.unit, "given", "used")
    with went:
        judged = [row for row in rows if row["judged"]]
        if judged:
            chart.shares(_went(record), judged, record.unit, "share right", "went")
        else:
            st.caption("No answer to these questions was judged yet.")
    chart.numbers([{name: _shown(value) for name, value in row.items()} for row in rows])


def _row(record: SkillUseRecord, at: int) -> dict[str, str | int | float]:
    one = record.tallies[at]
    day = f"{one.start:%Y-%m}" if record.unit == "month" else f"{one.start:%Y-%m-%d}"
    told: dict[str, str | int | float] = {
        record.unit: day,
        "given": one.given,
        "judged": one.judged,
        "right": one.right,
    }
    return told | ({"share right": one.right / one.judged} if one.judged else {})


def _shown(value: str | float) -> str:
    return f"{value:.0%}" if isinstance(value, float) else str(value)


def _used(record: SkillUseRecord) -> str:
    first, last = record.tallies[0].start, record.tallies[-1].start
    return (
        f"Given to {record.given} questions between {first:%Y-%m-%d} and {last:%Y-%m-%d}, "
        f"shown by {record.unit}."
    )


def _went(record: SkillUseRecord) -> str:
    return (
        f"{record.right} of {record.judged} judged answers were right "
        f"({record.right / record.judged:.0%}); {record.expected / record.judged:.0%} of others "
        "like them are that had it not: same type, profile and run."
    )


def _questions(
    store: Store,
    heading: str,
    pages: Callable[[Store, str, int, int], tuple[list[Use], int]],
    name: str,
    parameter: str,
    none: str,
) -> None:
    """Questions with their verdicts, a page at a time."""
    st.header(heading, anchor=False)
    start = wanted_offset(parameter, SHOWN)
    found, total = pages(store, name, start, SHOWN)
    if not total:
        st.caption(none)
        return
    offset = offset_of(total, parameter, SHOWN)
    if offset != start:
        found, _ = pages(store, name, offset, SHOWN)
    for one in found:
        key = f"{parameter}_{one.trajectory}"
        with st.container(horizontal=True, vertical_alignment="center", key=key):
            link("trajectory", plain(one.question), trajectory=one.trajectory)
            st.caption(f"{moment(one.at)}, {VERDICTS[one.right]}")
