"""A trajectory as one HTML file with all in it, which opens anywhere without a network."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from domain.asking import Citation, Evidence
from domain.errors import HomerError
from domain.media import Video
from domain.people import tags_in_words
from store.database import Store
from ui.marks import STATES, remark_html
from ui.times import from_to, hms, lasting, moment
from views.answer_lines import answer_line
from views.library import videos_named
from views.moment import frame_at
from views.rounds import (
    InspectedTrajectory,
    ShownCall,
    SubtaskChange,
    calls_in_round,
    round_headline,
)
from views.trajectory import Round

PAGE = Path(__file__).parent / "parts" / "export.page"


def as_page(store: Store, shown: InspectedTrajectory) -> str:
    """The whole page; every word from outside is escaped."""
    row = shown.row
    videos = videos_named(store, row.question.videos)
    numbers = [0, *(one.number for one in shown.history.rounds)]
    cited = row.answer.citations if row.answer else ()
    return Template(PAGE.read_text("utf-8")).substitute(
        title=escape(f"Homer: {row.question.text}"),
        question=escape(row.question.text),
        answer=escape(answer_line(row.answer, row.question) if row.answer else "No answer."),
        facts=escape(_facts(shown)),
        moments="".join(_moment(store, one, videos) for one in cited),
        lanes="".join(_lanes(shown, video) for video in videos.values()),
        rounds="".join(_round(store, shown, videos, number) for number in numbers),
    )


def _facts(shown: InspectedTrajectory) -> str:
    row, history = shown.row, shown.history
    told = (STATES.get(row.state, row.state), f"profile {row.profile}", f"{row.tokens} tokens")
    cost = f"{history.cost_usd:.4f} US dollars"
    return " · ".join((*told, cost, lasting(row.seconds), moment(row.started_at), row.id))


def _lanes(shown: InspectedTrajectory, video: Video) -> str:
    rows = [_lane(one, video) for one in shown.history.rounds]
    ends = f'<div class="ends"><span>0:00:00</span><span>{hms(video.duration_ms)}</span></div>'
    return f'<h3 dir="auto">{escape(video.title)}</h3>{"".join(rows)}{ends}'


def _lane(one: Round, video: Video) -> str:
    found = one.found.evidence if one.found else ()
    bars = "".join(_bar(piece, video) for piece in found if piece.video == video.id)
    name = f"Round {one.number}: {_apart(one.subtask)}"
    return f'<div class="lane"><a href="#round-{one.number}">{name}</a><div>{bars}</div></div>'


def _bar(found: Evidence, video: Video) -> str:
    length = max(1, video.duration_ms)
    left = 100 * found.span.start_ms / length
    width = 100 * found.span.length_ms / length
    label = escape(f"{from_to(found.span)} {found.ref}", quote=True)
    return f'<span class="bar" style="left:{left:.3f}%;width:{width:.3f}%" title="{label}"></span>'


def _round(
    store: Store, shown: InspectedTrajectory, videos: Mapping[str, Video], number: int
) -> str:
    one = next((r for r in shown.history.rounds if r.number == number), None)
    name = round_headline(shown.history, number) if one else "Before the first round: the plan"
    found = [piece for search in (one.searches if one else ()) for piece in search.evidence]
    parts = [
        f'<section id="round-{number}"><h2 dir="auto">{escape(name)}</h2>',
        remark_html(shown.remarks(number)),
        "".join(_moment(store, piece, videos) for piece in found),
        _ledger(shown.ledger(number)),
        "".join(_call(call) for call in calls_in_round(store, shown, number)),
        "</section>",
    ]
    return "".join(parts)


def _moment(store: Store, one: Citation | Evidence, videos: Mapping[str, Video]) -> str:
    title = videos[one.video].title if one.video in videos else one.video
    score = f", score {one.score:.2f}" if isinstance(one, Evidence) else ""
    head = escape(f"{from_to(one.span)} {title}")
    return (
        f'<div class="moment">{_image(store, one)}<strong dir="auto">{head}</strong>'
        f'<p dir="auto">{escape(tags_in_words(one.text))}</p>'
        f'<span class="small">{escape(one.ref)}{score}</span></div>'
    )


def _image(store: Store, one: Citation | Evidence) -> str:
    found = frame_at(store, one.video, one.span.start_ms, one.ref)
    if found is None:
        return ""
    try:
        data = base64.b64encode(store.blobs.get(found.blob)).decode()
    except (HomerError, OSError):
        return ""
    told = f"Frame of the video at {from_to(found.span)}"
    return f'<img alt="{told}" src="data:image/jpeg;base64,{data}">'


def _ledger(changes: Sequence[SubtaskChange]) -> str:
    if not changes:
        return ""
    return f"<h3>Ledger</h3><ul>{''.join(_subtask(change) for change in changes)}</ul>"


def _subtask(change: SubtaskChange) -> str:
    one = change.subtask
    marks = f' <span class="changed">changed: {escape(", ".join(change.marks))}</span>'
    answer = f" → {_apart(one.answer)}" if one.answer else ""
    told = f"{one.id} {_apart(one.text)} ({one.state}, {one.attempts} attempts)"
    return f'<li dir="auto">{told}{answer}{marks if change.marks else ""}</li>'


def _apart(words: str) -> str:
    """Words that cannot turn the direction in which what follows them is read."""
    return f"<bdi>{escape(words)}</bdi>"


def _call(call: ShownCall) -> str:
    event = call.event
    took = f"{event.tokens_in} tokens in, {event.tokens_out} out, {event.cost_usd:.4f} US dollars"
    head = escape(f"{event.purpose}: {event.model}, {took}, {lasting(event.ms / 1000)}")
    prompts = _words((f"Prompt, {role}", words) for role, words in call.messages)
    reply = _words([("Error", event.error)] if event.error else [], [("Reply", call.reply)])
    return f"<details><summary>{head}</summary>{prompts}{reply}</details>"


def _words(*told: Iterable[tuple[str, str]]) -> str:
    every = [one for some in told for one in some]
    return "".join(
        f'<p class="small">{escape(name)}</p><pre dir="auto">{escape(words)}</pre>'
        for name, words in every
    )
