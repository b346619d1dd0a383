"""How an answer and the rounds that led to it are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.console import say, say_json
from views.answer_lines import answer_line, citation_line, confidence_line
from views.words import plain_line

if TYPE_CHECKING:
    from domain.asking import Question
    from flows.workspace import Workspace
    from graphs.ask_result import AskResult


@contextmanager
def shown(desk: Workspace, question: Question, json: bool) -> Iterator[Callable[[AskResult], None]]:
    """Shows an answer; one that Ctrl-C cut short too, before it goes on as Ctrl-C."""
    from graphs.ask_result import StoppedEarly, answer_json

    def show(asked: AskResult) -> None:
        if json:
            return say_json(answer_json(asked))
        return show_answer(asked, question, _titles(desk))

    try:
        yield show
    except StoppedEarly as stopped:
        show(stopped.asked)
        raise


def show_answer(asked: AskResult, question: Question, titles: Mapping[str, str]) -> None:
    """The answer, how sure it is, what it rests on, and where its steps can be seen."""
    answer = asked.answer
    say(answer_line(answer, question))
    if answer.declined:
        say("declined: the moments below are only the nearest")
    say("; ".join(part for part in (confidence_line(answer), answer.note) if part))
    for citation in answer.citations:
        say(f"  {citation_line(citation, titles)}")
    if answer.not_in_memory:
        for searched in answer.searched:
            say(f"  searched: {plain_line(searched)}")
    say(f"trajectory {asked.trajectory_id} ({asked.rounds} rounds, {asked.seconds:.1f} s)")


def _titles(desk: Workspace) -> dict[str, str]:
    from store.queries.videos import list_videos

    with desk.store.begin() as session:
        return {video.id: video.title for video in list_videos(session)}
