"""Export a trajectory as one self-contained HTML file."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from string import Template

from domain.asking import Citation, Evidence, Subtask
from domain.errors import HomerError
from domain.media import Video
from domain.people import tags_in_words
from domain.words import (
    counted,
    format_number,
    format_span,
    format_time,
    reader,
    translate,
    translate_sentence,
)
from library.answers import answer_line
from library.moments import frame_at
from library.rounds import History, ShownCall, calls_in_round, round_headline
from library.videos import videos_named
from store.database import Store
from ui.formatting import format_cost, format_date, format_duration, format_usage
from ui.harness_remarks import ledger_changes, remarks_html, round_remarks, state_in_words

TEMPLATE = Path(__file__).parent / "components" / "export.page"


def render_page(store: Store, inspected: History) -> str:
    """Render the page, with all text from outside escaped."""
    row = inspected.row
    videos = videos_named(store, row.question.videos)
    numbers = [0, *(round_.number for round_ in inspected.rounds)]
    cited = row.answer.citations if row.answer else ()
    facts = [state_in_words(row.state), translate("models {profile}").format(profile=row.profile)]
    if row.tokens:
        facts.append(format_usage(row.tokens, inspected.cost_usd))
    facts += [format_duration(row.seconds), format_date(row.started_at)]
    return Template(TEMPLATE.read_text("utf-8")).substitute(
        language=reader.get().code,
        lanes_name=translate("Evidence of each round"),
        title=escape(f"Homer: {row.question.text}"),
        question=escape(row.question.text),
        answer=escape(
            answer_line(row.answer, row.question) if row.answer else translate("No answer.")
        ),
        facts=escape(" · ".join(facts)),
        moments="".join(_moment(store, round_, videos) for round_ in cited),
        lanes="".join(_video_lanes(inspected, video) for video in videos.values()),
        rounds="".join(_round(store, inspected, videos, number) for number in numbers),
    )


def _video_lanes(inspected: History, video: Video) -> str:
    length, rows = max(1, video.duration_ms), ""
    for round_ in inspected.rounds:
        bars = ""
        for span in (piece.span for piece in round_.evidence if piece.video == video.id):
            left, width = 100 * span.start_ms / length, 100 * span.length_ms / length
            style = f"left:{left:.3f}%;width:{width:.3f}%"
            label = escape(format_span(span), quote=True)
            bars += f'<span class="bar" style="{style}" title="{label}"></span>'
        name = translate("Round {number}: {text}").format(
            number=round_.number, text=_isolated(tags_in_words(round_.text))
        )
        lane = f'<a href="#round-{round_.number}">{name}</a><div>{bars}</div>'
        rows += f'<div class="lane">{lane}</div>'
    first, last = format_time(0), format_time(video.duration_ms)
    ends = f'<div class="ends"><span>{first}</span><span>{last}</span></div>'
    return f'<h3 dir="auto">{escape(video.title)}</h3>{rows}{ends}'


def _round(store: Store, inspected: History, videos: Mapping[str, Video], number: int) -> str:
    round_ = next((other for other in inspected.rounds if other.number == number), None)
    headline = (
        round_headline(inspected, number)
        if round_
        else translate("Before the first round: the plan")
    )
    ledger, changes = "", ledger_changes(inspected, number)
    if changes:
        heading = translate("Parts of the question")
        subtasks = "".join(_subtask(subtask, marks) for subtask, marks in changes)
        ledger = f"<h3>{heading}</h3><ul>{subtasks}</ul>"
    parts = [
        f'<section id="round-{number}"><h2 dir="auto">{escape(headline)}</h2>',
        remarks_html(round_remarks(inspected, number)),
        "".join(_moment(store, piece, videos) for piece in (round_.evidence if round_ else ())),
        ledger,
        "".join(_call(call) for call in calls_in_round(store, inspected, number)),
        "</section>",
    ]
    return "".join(parts)


def _moment(store: Store, item: Citation | Evidence, videos: Mapping[str, Video]) -> str:
    title = videos[item.video].title if item.video in videos else translate("a deleted video")
    score = (
        translate("match {score}").format(score=format_number(item.score, ".2f"))
        if isinstance(item, Evidence)
        else ""
    )
    head = escape(f"{format_span(item.span)} {title}")
    frame, image = frame_at(store, item.video, item.span.start_ms, item.ref), ""
    if frame is not None:
        with suppress(HomerError, OSError):
            data = base64.b64encode(store.blobs.get(frame.blob)).decode()
            alt = translate("Frame of the video at {time}").format(time=format_span(frame.span))
            image = f'<img alt="{alt}" src="data:image/jpeg;base64,{data}">'
    return (
        f'<div class="moment">{image}<strong dir="auto">{head}</strong>'
        f'<p dir="auto">{escape(tags_in_words(item.full_text))}</p>'
        f'<span class="small">{score}</span></div>'
    )


def _subtask(subtask: Subtask, changes: Sequence[str]) -> str:
    changed = translate("changed: {marks}").format(marks=", ".join(changes))
    marks = f' <span class="changed">{escape(changed)}</span>'
    answer = f" → {_isolated(tags_in_words(subtask.answer))}" if subtask.answer else ""
    attempts = counted(subtask.attempts, "attempt")
    facts = f"{_isolated(tags_in_words(subtask.text))} ({translate(subtask.state)}, {attempts})"
    return f'<li dir="auto">{facts}{answer}{marks if changes else ""}</li>'


def _isolated(text: str) -> str:
    """Isolate text, so that it cannot change the writing direction of what follows."""
    return f"<bdi>{escape(text)}</bdi>"


def _call(call: ShownCall) -> str:
    event = call.event
    cost = f", {format_cost(event.cost_usd)}" if event.cost_usd else ""
    took = translate("{tokens} in, {written} out{cost}").format(
        tokens=counted(event.tokens_in, "token"),
        written=format_number(event.tokens_out),
        cost=cost,
    )
    head = escape(f"{event.purpose}: {event.model}, {took}, {format_duration(event.ms / 1000)}")
    prompts = _text_blocks(
        (translate("Prompt, {role}").format(role=role), text) for role, text in call.messages
    )
    reply = _text_blocks(
        [(translate("Error"), translate_sentence(event.error))] if event.error else [],
        [(translate("Reply"), call.reply)],
    )
    return f"<details><summary>{head}</summary>{prompts}{reply}</details>"


def _text_blocks(*groups: Iterable[tuple[str, str]]) -> str:
    blocks = [block for group in groups for block in group]
    return "".join(
        f'<p class="small">{escape(name)}</p><pre dir="auto">{escape(text)}</pre>'
        for name, text in blocks
    )
