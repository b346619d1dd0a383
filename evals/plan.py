"""What a run asks, in which order, in which arms; decided beforehand by data set and settings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from domain.choices import AblationStage, Protocol
from domain.errors import InputError
from domain.evaluation import PLAIN, WITH, WITHOUT, QuestionPart, RunSettings
from domain.settings import AskSettings
from domain.texts import storable
from evals.dataset import Dataset, EvalQuestion, EvalVideo
from evals.judges.words import judge_model
from models.profile import Profile
from skills.learn import BATCH

PORTS = (
    *("speech", "activity", "faces", "speaker", "screen", "objects"),
    *("text", "reranker", "images", "writer"),
)
"""What else of a profile than its language models decides what is remembered and found."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._+-]{0,79}", re.IGNORECASE)


@dataclass(frozen=True)
class PlannedQuestion:
    """A question in its place: which part of the protocol it is for, and in which batch."""

    question: EvalQuestion
    place: int
    part: QuestionPart
    batch: int


@dataclass(frozen=True)
class Plan:
    """A run as it is planned. ``absent``: videos that are not there, whose questions are left."""

    settings: RunSettings
    videos: tuple[EvalVideo, ...]
    questions: tuple[PlannedQuestion, ...]
    absent: tuple[str, ...] = ()

    @property
    def batches(self) -> tuple[int, ...]:
        """Numbers of the batches, in order."""
        return tuple(sorted({one.batch for one in self.questions}))

    def arms_of(self, one: PlannedQuestion) -> tuple[str, ...]:
        """The arms in which a question is answered; the plain way chooses among options only."""
        plain = self.settings.baseline and one.part is QuestionPart.TEST and one.question.options
        return (*self.arms(one.part), PLAIN) if plain else self.arms(one.part)

    def arms(self, part: QuestionPart) -> tuple[str, ...]:
        """The arms in which questions of a part are asked."""
        if self.settings.protocol is Protocol.NONE:
            return tuple(map(str, self.settings.stages))
        learning = self.settings.protocol is Protocol.SPLIT and part is QuestionPart.LEARN
        return (WITH,) if learning else (WITH, WITHOUT)

    def learns(self, part: QuestionPart, arm: str) -> bool:
        """Whether an answer is learned from."""
        online = self.settings.protocol is Protocol.ONLINE
        return arm == WITH and (online or part is QuestionPart.LEARN)


def settings_of(arm: str, ask: AskSettings) -> AskSettings:
    """The settings that questions of an arm are asked with."""
    if arm in (WITH, WITHOUT):
        return ask.model_copy(update={"skills": arm == WITH})
    return ask.model_copy(update={"memory": AblationStage(arm)})


def plan(
    dataset: Dataset,
    profile: Profile,
    protocol: Protocol | None = None,
    stages: Sequence[AblationStage] = (),
    limit: int | None = None,
    *,
    baseline: bool = False,
) -> Plan:
    """The run of a data set with a profile.

    Args:
        dataset: questions about videos that are not there are left out.
        profile: answers, and judges open answers.
        protocol: None: ``split``, or ``none`` with ``stages``.
        stages: how much of the memory is searched, beside the whole of it.
        limit: only so many questions, the first.
        baseline: answer multiple choice the plain way as well; some data sets want it anyway.

    Raises:
        InputError: no question can be asked, or the protocol does not fit.
    """
    there = {one.name: one for one in dataset.videos if one.file or one.captions}
    asked = [kept(one) for one in dataset.questions if one.video in there][:limit]
    absent = dict.fromkeys(one.video for one in dataset.questions if one.video not in there)
    if not asked:
        raise InputError(f"{dataset.name}: there is no question about a video that is there")
    chosen = protocol or (Protocol.NONE if stages else Protocol.SPLIT)
    if stages and chosen is not Protocol.NONE:
        raise InputError("an ablation compares answers without learning: use --protocol none")
    settings = RunSettings(
        dataset=dataset.name,
        profile=profile.name,
        protocol=chosen,
        stages=_with_whole(stages),
        limit=limit,
        questions=len(asked),
        digest=digest(asked),
        judge=judge_model(profile),
        reasoner=profile.reasoner,
        baseline=baseline or dataset.baseline,
        models=tuple(_models(profile)),
        ask=profile.settings.ask,
    )
    videos = tuple(there[name] for name in dict.fromkeys(one.video for one in asked))
    return Plan(settings, videos, tuple(_placed(asked, chosen)), tuple(absent))


def _models(profile: Profile) -> Iterator[str]:
    """Which model does what; where it is served does not matter, since a server may move."""
    for port in PORTS:
        yield f"{port}: {getattr(profile, port)}"
    for role, spec in sorted(profile.chat.items()):
        yield f"{role}: {spec.model}"


def kept(question: EvalQuestion) -> EvalQuestion:
    """The question as the store can keep it, whatever characters its texts have."""
    texts = {
        "id": storable(question.id),
        "question": storable(question.question) or "?",
        "options": tuple(map(storable, question.options)),
        "answer": storable(question.answer),
        "types": tuple(map(storable, question.types)),
    }
    return question.model_copy(update=texts)


def _with_whole(stages: Iterable[AblationStage]) -> tuple[AblationStage, ...]:
    wanted = {*stages, AblationStage.WHOLE}
    return tuple(stage for stage in AblationStage if stage in wanted)


def digest(questions: Iterable[EvalQuestion]) -> str:
    """Tells one set of questions from another."""
    made = hashlib.sha256()
    for one in questions:
        made.update(one.model_dump_json().encode() + b"\n")
    return made.hexdigest()[:16]


def _placed(asked: Sequence[EvalQuestion], protocol: Protocol) -> list[PlannedQuestion]:
    """The questions to learn from first, then those to test on; in batches of 64."""
    learn = learning_videos(asked) if protocol is Protocol.SPLIT else frozenset()
    parts = {
        QuestionPart.LEARN: [one for one in asked if one.video in learn],
        QuestionPart.TEST: [one for one in asked if one.video not in learn],
    }
    placed: list[PlannedQuestion] = []
    batch = 0
    for part, questions in parts.items():
        for first in range(0, len(questions), BATCH):
            some = questions[first : first + BATCH]
            placed += [PlannedQuestion(q, len(placed) + n, part, batch) for n, q in enumerate(some)]
            batch += 1
    return placed


def learning_videos(asked: Sequence[EvalQuestion]) -> frozenset[str]:
    """The videos whose questions are learned from: about half of the questions.

    Videos go in the order of the hashes of their names, each to the part with fewer questions.

    Raises:
        InputError: there is one video only.
    """
    counts: dict[str, int] = {}
    for one in asked:
        counts[one.video] = counts.get(one.video, 0) + 1
    if len(counts) < 2:
        raise InputError(
            "questions about one video cannot be split by video into those to learn from and those "
            "to test on: use --protocol online or --protocol none"
        )
    learn, sizes = set[str](), [0, 0]
    for name in sorted(counts, key=lambda name: hashlib.sha256(name.encode()).digest()):
        tested = sizes[0] > sizes[1]
        sizes[tested] += counts[name]
        if not tested:
            learn.add(name)
    return frozenset(learn)


def run_name(plan: Plan) -> str:
    """What a run is called that nobody named: the same settings give the same name."""
    settings = plan.settings
    parts = [settings.dataset, settings.profile, str(settings.protocol)]
    if len(settings.stages) > 1:
        parts.append("+".join(stage.name.lower() for stage in settings.stages[:-1]))
    if settings.limit is not None:
        parts.append(str(settings.limit))
    return checked_name(re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(parts)).strip("-"))


def checked_name(name: str) -> str:
    """A run's name, which is also part of a file's.

    Raises:
        InputError: it has other characters than letters, digits and ``._+-``, or is too long.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"a run cannot be called {name!r}: use letters, digits and ._+-")
    return name
