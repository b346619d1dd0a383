"""How an answer and the rounds that led to it are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cli.console import clean, say, say_json
from domain.people import in_words

if TYPE_CHECKING:
    from domain.asking import Answer, Citation, Question
    from domain.live import Told
    from flows.desk import Desk
    from graphs.ask import Asked

SHOWN = 160


def lines_of(told: Told) -> Iterator[str]:
    """What a run tells as lines; most of it has none."""
    write = _WRITERS.get(told.kind)
    if write is not None:
        yield from write(told)


def _plan(event: Any) -> Iterator[str]:
    for subtask in event.subtasks:
        yield f"plan {subtask.id}: {clean(subtask.text)}"


def _skills(event: Any) -> Iterator[str]:
    if event.skills:
        given = ", ".join(f"{one.name} ({one.score:.2f})" for one in event.skills)
        yield f"skills: {given}"


def _round(event: Any) -> Iterator[str]:
    yield f"round {event.round}: {event.subtask}: {clean(event.text)}"


def _guard(event: Any) -> Iterator[str]:
    if not event.accepted:
        yield f"  refused ({event.rule}): {clean(event.complaint)}"


def _retrieve(event: Any) -> Iterator[str]:
    how = f" (from structure: {event.finding.asks})" if event.finding else ""
    head = f"  {event.mode} {clean(event.query)!r}{how}:"
    if event.refused:
        yield f"{head} {clean(event.refused)}"
    elif event.nothing_close or not event.evidence:
        yield f"{head} nothing close"
    else:
        best = event.evidence[0]
        yield f"{head} {len(event.evidence)} found, best {best.span} ({best.score:.2f})"


def _call(event: Any) -> Iterator[str]:
    told = f"{event.tokens_in} tokens in, {event.tokens_out} out, {event.ms / 1000:.1f} s"
    yield f"  {event.purpose}: {event.model}: {told}"


def _assess(event: Any) -> Iterator[str]:
    for resolution in event.resolved:
        refs = " ".join(f"[{ref}]" for ref in resolution.refs)
        yield f"  {resolution.subtask} resolved: {told(resolution.answer)} {refs}".rstrip()


def _warning(event: Any) -> Iterator[str]:
    if event.warning:
        yield f"  {clean(event.warning)}"


def _force(event: Any) -> Iterator[str]:
    yield f"  next: {event.mode}, because {clean(event.reason)}"


def _error(event: Any) -> Iterator[str]:
    yield f"  {event.where} failed: {clean(event.message)}"


def _fork(event: Any) -> Iterator[str]:
    from graphs.edits import fork_line

    yield clean(fork_line(event))


_WRITERS: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "fork": _fork,
    "skills": _skills,
    "plan": _plan,
    "replan": _plan,
    "round": _round,
    "call": _call,
    "guard": _guard,
    "retrieve": _retrieve,
    "assess": _assess,
    "record": _warning,
    "force": _force,
    "error": _error,
}


@contextmanager
def shown(desk: Desk, question: Question, json: bool) -> Iterator[Callable[[Asked], None]]:
    """Shows an answer; one that Ctrl-C cut short too, before it goes on as Ctrl-C."""
    from graphs.ask import StoppedEarly, answer_json

    def show(asked: Asked) -> None:
        if json:
            return say_json(answer_json(asked))
        return show_answer(asked, question, _titles(desk))

    try:
        yield show
    except StoppedEarly as stopped:
        show(stopped.asked)
        raise


def show_answer(asked: Asked, question: Question, titles: Mapping[str, str]) -> None:
    """The answer, how sure it is, what it rests on, and where its steps can be seen."""
    answer = asked.answer
    say(answer_line(answer, question))
    if answer.declined:
        say("declined: the moments below are only the nearest")
    say("; ".join(part for part in (sureness(answer), answer.note) if part))
    for citation in answer.citations:
        say(f"  {citation_line(citation, titles)}")
    if answer.not_in_memory:
        for searched in answer.searched:
            say(f"  searched: {clean(searched)}")
    say(f"trajectory {asked.trajectory_id} ({asked.rounds} rounds, {asked.seconds:.1f} s)")


def sureness(answer: Answer) -> str:
    """How sure an answer is, in words and as a number, and how well it is supported."""
    from domain.confidence import level

    told = f"confidence {level(answer.confidence)} ({answer.confidence:.2f})"
    return f"{told}; {answer.standing}" if answer.standing else told


def _titles(desk: Desk) -> dict[str, str]:
    from store.queries.videos import list_videos

    with desk.store.begin() as session:
        return {video.id: video.title for video in list_videos(session)}


def answer_line(answer: Answer, question: Question) -> str:
    """The answer's words, with the letter of the option that was chosen."""
    text = clean(answer.text)
    if answer.option is None:
        return told(answer.text)
    place = ord(answer.option) - ord("A")
    option = clean(question.options[place]) if place < len(question.options) else ""
    return f"{answer.option}. {option}" + (
        "" if text in ("", option, answer.option) else f" ({text})"
    )


def told(text: str) -> str:
    """``text`` on one line, with words for people whose name is not known."""
    return clean(in_words(text))


def citation_line(citation: Citation, titles: Mapping[str, str]) -> str:
    """``mm:ss-mm:ss``, what was said or seen, and which clip of which video it was."""
    words = told(citation.text)
    words = words if len(words) <= SHOWN else words[: SHOWN - 3].rstrip() + "..."
    clip = "" if citation.clip is None else f", clip {citation.clip}"
    title = clean(titles.get(citation.video, citation.video))
    support = "" if citation.support is None else f", support {citation.support:.2f}"
    return f"{citation.span}  {words}  ({title}{clip}) [{clean(citation.ref)}]{support}"
