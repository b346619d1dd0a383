"""The plan of a run: which questions, in which order and arms, fixed by data set and settings.

A run started from a page continues in a process of its own.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent.strategy import AUTO
from domain.errors import InputError
from domain.evaluation import BASELINE_ARM, WITH_SKILLS, WITHOUT_SKILLS, QuestionPart, RunSettings
from domain.evaluation_options import AblationStage, Protocol
from domain.rights import acting_user
from domain.settings import AskSettings
from domain.words import make_storable
from evals.dataset import Dataset, EvalQuestion, EvalVideo
from evals.datasets import read
from evals.judging import judge_model
from models.profile import Profile
from services.daemon import ACTING, log_file
from skills.learn import BATCH
from store.files import MODULE
from store.home import Home
from strategies.registry import check_strategy

PORTS = (
    *("speech", "activity", "faces", "speaker", "screen", "objects"),
    *("text", "reranker", "images", "writer"),
)
"""The ports, besides language models, that decide what is remembered and found."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._+-]{0,79}", re.IGNORECASE)


@dataclass(frozen=True)
class PlannedQuestion:
    """A question with its place, its part of the protocol and its batch."""

    question: EvalQuestion
    place: int
    part: QuestionPart
    batch: int


@dataclass(frozen=True)
class Plan:
    """A planned run. ``absent``: missing videos, whose questions are left out."""

    settings: RunSettings
    videos: tuple[EvalVideo, ...]
    questions: tuple[PlannedQuestion, ...]
    absent: tuple[str, ...] = ()

    @property
    def batches(self) -> tuple[int, ...]:
        return tuple(sorted({planned.batch for planned in self.questions}))

    def arms_of(self, planned: PlannedQuestion) -> tuple[str, ...]:
        """Return the arms in which a question is answered; the plain way needs options."""
        plain = (
            self.settings.baseline
            and planned.part is QuestionPart.TEST
            and planned.question.options
        )
        return (*self.arms(planned.part), BASELINE_ARM) if plain else self.arms(planned.part)

    def arms(self, part: QuestionPart) -> tuple[str, ...]:
        """Return the arms in which questions of a part are asked."""
        settings = self.settings
        if settings.protocol is Protocol.NONE or AUTO in settings.strategies:
            # ``auto`` is asked after every other strategy was learned from.
            names = (
                one for one in settings.strategies if (one, part) != (AUTO, QuestionPart.LEARN)
            )
            return (*map(str, settings.stages), *names)
        learning = self.settings.protocol is Protocol.SPLIT and part is QuestionPart.LEARN
        return (WITH_SKILLS,) if learning else (WITH_SKILLS, WITHOUT_SKILLS)

    def learns(self, part: QuestionPart, arm: str) -> bool:
        if AUTO in self.settings.strategies:
            return part is QuestionPart.LEARN
        online = self.settings.protocol is Protocol.ONLINE
        return arm == WITH_SKILLS and (online or part is QuestionPart.LEARN)


def settings_of(arm: str, ask: AskSettings) -> AskSettings:
    if arm in (WITH_SKILLS, WITHOUT_SKILLS):
        return ask.model_copy(update={"skills": arm == WITH_SKILLS})
    if arm in {*AblationStage}:
        return ask.model_copy(update={"memory": AblationStage(arm)})
    return ask.model_copy(update={"strategy": arm})


def plan(
    dataset: Dataset,
    profile: Profile,
    protocol: Protocol | None = None,
    stages: Sequence[AblationStage] = (),
    limit: int | None = None,
    *,
    baseline: bool = False,
    strategies: Sequence[str] = (),
    skills: bool = True,
) -> Plan:
    """Plan the run of a data set with a profile.

    Args:
        dataset: questions about missing videos are left out.
        profile: answers, and judges open answers.
        protocol: None: ``split``, or ``none`` with ``stages``.
        stages: how much of the memory is searched, besides the whole of it.
        limit: only so many questions, from the first on.
        baseline: answer multiple choice the plain way as well; some data sets require it.
        strategies: asked as well as the profile's; ``auto`` learns which of them to ask.
        skills: give questions the skills that there are.

    Raises:
        InputError: no question can be asked, or the protocol does not fit.
        NotFound: there is no such strategy.
    """
    available = {video.name: video for video in dataset.videos if video.file or video.captions}
    questions = [item for item in dataset.questions if item.video in available][:limit]
    absent = dict.fromkeys(
        video.video for video in dataset.questions if video.video not in available
    )
    if not questions:
        raise InputError(f"{dataset.name}: there is no question about a video that is there")
    ask = profile.settings.ask
    if not skills:
        ask = ask.model_copy(update={"skills": False})
    own = ask.strategy
    others = tuple(dict.fromkeys(check_strategy(n) for n in strategies if n != own))
    chosen = _protocol(protocol, stages, (own, *others))
    included = {*stages, AblationStage.WHOLE}
    # Which model does what; its endpoint does not matter, since a server may move.
    models = [f"{port}: {getattr(profile, port)}" for port in PORTS]
    models += [f"{role}: {spec.model}" for role, spec in sorted(profile.chat.items())]
    settings = RunSettings(
        dataset=dataset.name,
        profile=profile.name,
        protocol=chosen,
        stages=tuple(stage for stage in AblationStage if stage in included),
        strategies=others,
        limit=limit,
        questions=len(questions),
        digest=digest(questions),
        judge=judge_model(profile),
        reasoner=profile.answering,
        baseline=baseline or dataset.baseline,
        models=tuple(models),
        ask=ask,
    )
    videos = tuple(available[name] for name in dict.fromkeys(video.video for video in questions))
    return Plan(settings, videos, tuple(_placed(questions, chosen)), tuple(absent))


def _protocol(
    wanted: Protocol | None, stages: Sequence[AblationStage], strategies: Sequence[str]
) -> Protocol:
    """Return the protocol of a run that asks these strategies, the first by default.

    Raises:
        InputError: the wanted one does not fit.
    """
    if AUTO in strategies[1:]:
        if stages or wanted not in (None, Protocol.SPLIT):
            raise InputError(
                "auto learns on one half of the videos and is compared on the other: use "
                "--protocol split, without stages"
            )
        if len(strategies) < 3:
            raise InputError(
                "auto chooses among strategies: name another one besides, as in "
                "--strategy NAME,auto; 'homer strategies' lists them"
            )
        return Protocol.SPLIT
    beside = bool(stages or strategies[1:])
    chosen = wanted or (Protocol.NONE if beside else Protocol.SPLIT)
    if beside and chosen is not Protocol.NONE:
        raise InputError(
            "stages and strategies are compared on answers without learning: use --protocol none"
        )
    return chosen


def digest(questions: Iterable[EvalQuestion]) -> str:
    """Return a short hash that identifies a set of questions."""
    sha = hashlib.sha256()
    for question in questions:
        sha.update(question.model_dump_json().encode() + b"\n")
    return sha.hexdigest()[:16]


def _placed(questions: Sequence[EvalQuestion], protocol: Protocol) -> list[PlannedQuestion]:
    """Place the questions to learn from first, then those to test on; in batches of 64."""
    learn = learning_videos(questions) if protocol is Protocol.SPLIT else frozenset()
    parts = {
        QuestionPart.LEARN: [question for question in questions if question.video in learn],
        QuestionPart.TEST: [question for question in questions if question.video not in learn],
    }
    placed: list[PlannedQuestion] = []
    batch = 0
    for part, part_questions in parts.items():
        for first in range(0, len(part_questions), BATCH):
            batch_questions = part_questions[first : first + BATCH]
            placed += [
                PlannedQuestion(q, len(placed) + n, part, batch)
                for n, q in enumerate(batch_questions)
            ]
            batch += 1
    return placed


def learning_videos(questions: Sequence[EvalQuestion]) -> frozenset[str]:
    """Choose the videos to learn from, with about half of the questions.

    Raises:
        InputError: there is only one video.
    """
    counts: dict[str, int] = {}
    for question in questions:
        counts[question.video] = counts.get(question.video, 0) + 1
    if len(counts) < 2:
        raise InputError(
            "questions about one video cannot be split by video into those to learn from and those "
            "to test on: use --protocol online or --protocol none"
        )
    learn, sizes = set[str](), [0, 0]
    # In the order of the hashes of their names, each to the part with fewer questions.
    for name in sorted(counts, key=lambda name: hashlib.sha256(name.encode()).digest()):
        tested = sizes[0] > sizes[1]
        sizes[tested] += counts[name]
        if not tested:
            learn.add(name)
    return frozenset(learn)


def run_name(plan: Plan) -> str:
    """Return the default name of a run; the same settings give the same name."""
    settings = plan.settings
    parts = [settings.dataset, settings.profile, str(settings.protocol)]
    if len(settings.stages) > 1:
        parts.append("+".join(stage.name.lower() for stage in settings.stages[:-1]))
    if settings.strategies:
        parts.append("+".join(settings.strategies))
    if settings.limit is not None:
        parts.append(str(settings.limit))
    return checked_name(re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(parts)).strip("-"))


def checked_name(name: str) -> str:
    """Return a run's name once checked; it is also part of a file's.

    Raises:
        InputError: it has other characters than letters, digits and ``._+-``, or is too long.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"a run cannot be called {name!r}: use letters, digits and ._+-")
    return name


# A run in a process of its own.


@dataclass(frozen=True)
class RunJob:
    """A process that runs the evaluation ``name``; ``log`` has what it prints."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def error(self) -> str:
        """Return the last error that it printed; empty for none."""
        lines = self.log.read_text(errors="replace").splitlines()
        errors = [line.partition(":")[2].strip() for line in lines if line.startswith("homer:")]
        return errors[-1] if errors and not self.running else ""


def start_run(
    home: Home,
    dataset: str,
    folder: Path,
    profile: str,
    command: Sequence[str] = (*MODULE, "cli"),
) -> RunJob:
    """Start an evaluation; return at once.

    Args:
        command: the command ``homer``.

    Raises:
        NotFound: there is no data set of this name.
        InputError: a file of it is missing or malformed.
    """
    folder = folder.expanduser().absolute()
    read(dataset, folder)
    name = f"{dataset}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    arguments = ["eval", "run", dataset, str(folder), "--profile", profile, "--name", name]
    log = home.make().logs / f"eval-{name}.log"
    environment = {**os.environ, "HOMER_HOME": str(home.root)}
    if user := acting_user.get():
        environment[ACTING] = make_storable(user)
    with log_file(log) as output:
        process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
    return RunJob(name, log, process)
