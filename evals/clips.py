"""Questions about clips: a file of them beside the clips, and Homer's everyday questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from string import ascii_uppercase

from agent.harness.verify_and_correct import BY_HARNESS
from domain.asking import Answer, ConfidenceLevel
from domain.evaluation import BASELINE_ARM
from domain.memories import MemorySource
from domain.trajectory import Acted, Ended, Event, Guarded, ModelCalled, QuestionAsked
from domain.words import plain_line, shortened
from evals.dataset import QuestionSet
from evals.datasets.specifications import FORM, read_set
from evals.measuring import Answered, Asked, measure, percent
from evals.running import EvalListener
from evals.statistics import figure, median
from evals.tables import Bar, Findings, Measured, Row
from flows.workspace import Workspace
from retrieval.quotes_and_citations import cite
from store.database import Store
from store.queries.clips import clips_of, memory_view
from store.queries.memories import memories_of_clips
from store.queries.trajectories import events_of

CLIPS = "local"
CITED = 80.0
"""Percent of questions whose first citation must overlap a marked span."""
ABOVE_CHANCE = 25.0
"""Points of accuracy above chance."""
VALID = 95.0
"""Percent of rounds in which the reasoner's own action must be accepted."""
SHOWN = 100
"""Characters of a wrong answer that are shown."""


def measure_clips(
    workspace: Workspace,
    questions: Path,
    listener: EvalListener,
    out: Path | None = None,
    *,
    baseline: bool = False,
) -> Measured:
    """Measure answers to a file of questions about the clips beside it.

    Raises:
        InputError: the file cannot be read, or none of the clips is there.
    """
    dataset = FORM.read(CLIPS, questions)
    return measure(workspace, dataset, listener, of_clips, out, baseline=baseline)


def of_clips(asked: Asked) -> Findings:
    """Measure cited moments, chosen options, and the conduct of the reasoner."""
    answers = asked.answers
    names = dict.fromkeys(sorted(one.question.video for one in answers))
    of_video = (clip_row(n, [one for one in answers if one.question.video == n]) for n in names)
    every = clip_row("all", answers)
    kept, retries = Counter[str](), asked.workspace.settings.ask.retries
    with asked.workspace.store.begin(snapshot=True) as session:
        for one in answers:
            if one.answer is not None and one.result.trajectory is not None:
                events = events_of(session, one.result.trajectory)
                kept += conduct(events, retries)
                # The answer's citations, and those that the store returns word for word.
                question, given = _question_and_answer(events)
                unscored = [cited.unscored for cited in given.citations] if given else []
                refs = [cited.ref for cited in unscored]
                resolved = cite(session, question.view, refs).citations
                same = len(set(unscored) & set(resolved))
                kept += Counter(citations=len(unscored), resolved=same)
    plain = figure(one.right for one in asked.arms.get(BASELINE_ARM, ()))
    read, rounds = kept["tokens_in"], kept["rounds"]
    above = percent(every, "right") - percent(every, "chance")
    return Findings(
        tables={"by clip": (*of_video, every)},
        measures=(
            *asked.measure("right option", every.figures["right"], plain),
            *asked.measure("first citation right", every.figures["cited"]),
        ),
        bars=(
            Bar("top citation overlaps the marked span, percent", percent(every, "cited"), CITED),
            Bar("right options, points above chance", above, ABOVE_CHANCE),
            *conduct_bars(kept, len(answers)),
        ),
        wrong=tuple(filter(None, map(_wrong_of_clip, answers))),
        notes=(f"{read / max(1, rounds):.0f} tokens read a round, over {rounds} rounds",)
        if read
        else (),
    )


def clip_row(name: str, answers: Sequence[Answered]) -> Row:
    """Summarise answers: choices apart from open questions."""
    choices = [one for one in answers if one.question.options]
    return Row(
        name,
        len(answers),
        {
            "cited": figure(one.cites_it for one in answers if one.question.spans),
            "choices": len(choices),
            "right": figure(one.right for one in choices),
            "chance": figure(1 / len(one.question.options) for one in choices),
            "rounds": median([one.result.took.rounds for one in answers]),
            "seconds": median([one.result.took.seconds for one in answers]),
        },
    )


def _wrong_of_clip(one: Answered) -> str:
    faults, asked = list[str](), one.question
    if asked.spans and not one.cites_it:
        marked = ", ".join(f"{s.start_ms / 1000:g}-{s.end_ms / 1000:g}" for s in asked.spans)
        faults.append(f"cites {one.first_cited}, marked {marked} s")
    if asked.options and not one.right:
        chosen = one.answer.option if one.answer else None
        faults.append(f"chose {chosen or 'nothing'}, right is {asked.answer}")
    return f"{plain_line(asked.id)}: {'; '.join(faults)}" if faults else ""


def conduct(events: Sequence[Event], retries: int) -> Counter[str]:
    """Count in a trajectory what a reasoner must keep to, right or wrong.

    ``rounds``: those with an action of the reasoner; ``valid``: those in which its own action was
    accepted within the allowed retries. ``choices``: answers to questions with options;
    ``options``: those that are one of them. ``tokens_in``: the input of all model calls.
    """
    # The guard judges the action before it.
    valid = {
        acted.round
        for acted, guarded in pairwise(events)
        if isinstance(acted, Acted)
        and isinstance(guarded, Guarded)
        and guarded.accepted
        and acted.action is not None
        and acted.action.reason != BY_HARNESS
        and acted.attempt <= retries
    }
    question, answer = _question_and_answer(events)
    letters = ascii_uppercase[: len(question.question.options)]
    return Counter(
        answers=int(answer is not None),
        rounds=len({event.round for event in events if isinstance(event, Acted)}),
        valid=len(valid),
        choices=int(bool(letters) and answer is not None),
        options=int(bool(letters) and answer is not None and answer.option in tuple(letters)),
        tokens_in=sum(event.tokens_in for event in events if isinstance(event, ModelCalled)),
    )


def _question_and_answer(events: Sequence[Event]) -> tuple[QuestionAsked, Answer | None]:
    asked = next(event for event in events if isinstance(event, QuestionAsked))
    return asked, next((event.answer for event in events if isinstance(event, Ended)), None)


def conduct_bars(kept: Mapping[str, int], questions: int) -> list[Bar]:
    """Return the bars that the conduct in the answers to so many questions is to reach."""

    def bar(name: str, part: str, whole: str, limit: float) -> Bar:
        total = kept.get(whole, 0)
        share = 100.0 * kept.get(part, 0) / total if total else 100.0
        return Bar(f"{name}, percent", share, limit)

    return [
        Bar("questions answered", kept.get("answers", 0), questions),
        bar("rounds with a valid action", "valid", "rounds", VALID),
        bar("citations that resolve", "resolved", "citations", 100.0),
        bar("choices that are an option", "options", "choices", 100.0),
    ]


# First questions, as a new user asks them: right, rightly declined, or wrong.

RIGHT = {QuestionSet.WORK: 65.0, QuestionSet.HELD: 65.0}
"""Percent that must be right or rightly declined; of the other sets ``USUAL``."""
USUAL = 80.0
SURE = {QuestionSet.WORK: 5.0, QuestionSet.HELD: 5.0}
"""Percent that may be wrong with high confidence; of the other sets none."""
SURE_RIGHT = 85.0
"""Percent of the answers with high confidence that must be right."""
SPOKEN = {MemorySource.SAID, MemorySource.CAPTION, MemorySource.SUBTITLE}
"""Sources of lines of speech."""


def measure_sets(
    workspace: Workspace,
    folder: Path,
    sets: Sequence[QuestionSet],
    listener: EvalListener,
    out: Path | None = None,
    questions: Path | None = None,
) -> list[Measured]:
    """Measure answers to sets of everyday questions about the clips in a folder.

    A set none of whose clips is there is left out, with a message.

    Args:
        out: named after each set where there are several.
        questions: asked instead of the sets, in their form.

    Raises:
        InputError: a file cannot be read, or none of the clips is there.
    """
    asked = (
        [FORM.read(questions.stem, questions, folder)]
        if questions is not None
        else [read_set(of, folder) for of in sets or QuestionSet]
    )
    there = [one for one in asked if any(video.file for video in one.videos)]
    for one in asked if there else ():
        if one not in there:
            listener.said(f"{one.name}: none of its clips is in {folder}")
    measured = []
    for one in there or asked:
        own = out and (out if len(asked) == 1 else out.with_stem(f"{out.stem}-{one.name}"))
        measured.append(measure(workspace, one, listener, of_set, own))
    return measured


def of_set(asked: Asked) -> Findings:
    """Count right, declined and wrong answers, by kind and by confidence."""
    answers = asked.answers
    kinds = dict.fromkeys(kind for one in answers for kind in one.question.types)
    rows = [kind_row(n, [one for one in answers if n in one.question.types]) for n in kinds]
    given = [one for one in answers if one.answer and not one.declined]
    levels = {
        level: found
        for level in ConfidenceLevel
        if (found := figure(one.right for one in given if one.level is level))
    }
    videos = dict.fromkeys(one.result.slot.video for one in answers)
    silent, remembered = silent_clips(asked.workspace.store, [*videos])
    name = asked.ran.run.settings.dataset
    known = QuestionSet(name) if name in {*QuestionSet} else QuestionSet.FIRST
    good, sure = figure(one.right for one in answers), figure(map(_is_sure, answers))
    right, wrong = (100 * one.value if one else 0.0 for one in (good, sure))
    bars = [
        Bar("right or rightly declined, percent", right, RIGHT.get(known, USUAL)),
        Bar("wrong with high confidence, percent", wrong, SURE.get(known, 0), most=True),
        Bar("silent clips without any line", silent - remembered, 0, most=True),
    ]
    if high := levels.get(ConfidenceLevel.HIGH):
        bars.append(Bar("right of high confidence, percent", 100 * high.value, SURE_RIGHT))
    return Findings(
        tables={
            "by kind": (*rows, kind_row("all", answers)),
            "by confidence": tuple(Row(n, one.of, {"right": one}) for n, one in levels.items()),
        },
        measures=(
            *asked.measure("right or rightly declined", good),
            *asked.measure("wrong with high confidence", sure),
        ),
        bars=tuple(bars),
        # The half that is looked at once is not looked into.
        wrong=()
        if known is QuestionSet.HELD
        else tuple(_wrong_of_set(one) for one in answers if not one.right),
        notes=(
            f"{remembered} of {silent} clips in which nothing is said have a line on what is seen, "
            "read or heard",
        ),
    )


def _is_sure(one: Answered) -> bool:
    """Check whether the answer is wrong with high confidence."""
    return not one.right and one.level is ConfidenceLevel.HIGH


def kind_row(name: str, answers: Sequence[Answered]) -> Row:
    good = [one for one in answers if one.right]
    declined = sum(one.declined for one in good)
    return Row(
        name,
        len(answers),
        {
            "right": len(good) - declined,
            "rightly declined": declined,
            "wrong": len(answers) - len(good),
            "wrong and sure": sum(map(_is_sure, answers)),
        },
    )


def _wrong_of_set(one: Answered) -> str:
    if one.answer is None:
        return f"{plain_line(one.question.id)}: no answer"
    what = "declined" if one.declined else shortened(plain_line(one.answer.text), SHOWN)
    cited = f"{one.answer.confidence:.2f}, cites {one.first_cited}"
    return f"{plain_line(one.question.id)} ({cited}): {what}"


def silent_clips(store: Store, videos: Sequence[str]) -> tuple[int, int]:
    """Count the clips of videos that have no line of speech, and those of them with another."""
    sources = list[set[MemorySource]]()
    with store.begin(snapshot=True) as session:
        for scope in memory_view(session, videos).scopes:
            of_clip = {clip.index: set[MemorySource]() for clip in clips_of(session, scope.video)}
            for row in memories_of_clips(session, scope.video, [*of_clip], scope.last_clip):
                of_clip[row.memory.clip].add(row.memory.source)
            sources += of_clip.values()
    silent = [one for one in sources if not one & SPOKEN]
    return len(silent), sum(map(bool, silent))
