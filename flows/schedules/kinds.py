"""The kinds of schedules (what each does, its options, its default time), and access to them.

A new kind consists of a Prefect flow with its options as parameters, a model of these options, and
a line in ``KINDS``. The flow is given by its path and imported only by the process that runs it.
Schedules are opened through Prefect's API, whose server is started if necessary.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, get_origin

import httpx
from pydantic import AfterValidator, Field, PositiveInt, ValidationError, model_validator

from domain.base import Frozen, first_problem
from domain.built import PeriodKind
from domain.errors import InputError, NotFound, SetupError
from domain.watching import When, parse_when
from flows.executors import report_to_prefect
from flows.video_locks import end_interrupted_streams
from services.supervisor import ScheduleWorker, api_url, library_id, work_pool_name
from store.database import open_store
from store.home import Home

if TYPE_CHECKING:
    from flows.schedules.deployments import ScheduleDeployments


NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")

Place = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
"""A path that means the same wherever it is read."""

ProfileName = Annotated[str | None, Field(description="the models; the configured ones")]


class NoOptions(Frozen):
    """The options of a kind that has none."""


class WatchOptions(Frozen):
    """The options of watching a folder."""

    folder: Place = Field(description="it is searched at any depth")
    stable_s: float = Field(
        default=10.0, ge=1, le=3600, description="seconds that a file must stay as it is"
    )
    profile: ProfileName = None


class FetchOptions(Frozen):
    """The options of fetching. ``right``: the user has the right to copy what is there."""

    urls: tuple[str, ...] = Field(default=(), description="videos, feeds or playlists; repeatable")
    file: Place | None = Field(default=None, description="a file with an address a line")
    folder: Place | None = Field(default=None, description="where to put them; the data directory")
    right: bool = Field(default=False, description="yes: I have the right to copy these")
    most: PositiveInt = Field(default=10, description="videos of an address in one run")
    profile: ProfileName = None

    @model_validator(mode="after")
    def _is_allowed(self) -> Self:
        if not self.right:
            raise ValueError("say right=yes where you have the right to copy what lies there")
        if not self.urls and self.file is None:
            raise ValueError("name urls=... or file=...")
        if wrong := [url for url in self.urls if not re.match(r"https?://\S+$", url)]:
            raise ValueError(f"{wrong[0]!r} is no http or https address")
        return self


class LearnOptions(Frozen):
    """The options of learning."""

    answers: PositiveInt = Field(default=64, description="it waits for so many judged answers")
    profile: ProfileName = None


class EvaluateOptions(Frozen):
    """The options of an evaluation."""

    dataset: str = Field(description="as `homer eval data` lists them")
    folder: Place = Field(description="where the data set's files are")
    limit: PositiveInt | None = Field(default=None, description="only the first questions")
    max_cost: float | None = Field(default=None, ge=0, description="US dollars a run")
    profile: ProfileName = None


class BuildOptions(Frozen):
    """The options of building the memory of strategies."""

    strategies: tuple[str, ...] = Field(
        default=(), description="all that build one; repeatable to name some"
    )
    profile: ProfileName = None


class BackupOptions(Frozen):
    """The options of a back-up."""

    folder: Place | None = Field(default=None, description="backups/ of the data directory")
    keep: PositiveInt = Field(default=7, description="the latest so many stay")


class ProfileOptions(Frozen):
    """The options of what the profile's settings say all about: retention, alerts."""

    profile: ProfileName = None


class RecapOptions(Frozen):
    """The options of a recap: of the whole day or hour before it runs."""

    video: str | None = Field(default=None, description="only this video; all")
    period: PeriodKind = Field(default="day", description="day or hour")
    profile: ProfileName = None


@dataclass(frozen=True)
class ScheduleKind:
    """A kind of schedule: what it does, its options and its default time.

    ``on``: it runs by default, since it changes nothing. ``module`` has a flow of its name.
    """

    name: str
    does: str
    options: type[Frozen]
    when: str
    on: bool = False
    module: str = "flows.schedules.runs"

    @property
    def flow(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def is_ready(self) -> bool:
        """Check whether it can run without any option."""
        try:
            self.options()
        except ValidationError:
            return False
        return True


KINDS = (
    ScheduleKind("watch", "watch new files of a folder", WatchOptions, "every 5 minutes"),
    ScheduleKind("fetch", "fetch feeds and lists of addresses", FetchOptions, "every 6 hours"),
    ScheduleKind("learn", "learn once a batch of answers is judged", LearnOptions, "every hour"),
    ScheduleKind(
        "evaluate",
        "ask a data set and judge the answers",
        EvaluateOptions,
        "daily 01:30",
        module="evals.nightly",
    ),
    ScheduleKind("recap", "sum up the day or hour before", RecapOptions, "daily 00:10"),
    ScheduleKind(
        "alerts", "judge and deliver what waits of alerts", ProfileOptions, "every 5 minutes"
    ),
    ScheduleKind("retain", "keep less of videos the older they are", ProfileOptions, "daily 02:30"),
    ScheduleKind("build", "build the memory of strategies", BuildOptions, "daily 02:00"),
    ScheduleKind("backup", "back the library up, keep the latest", BackupOptions, "daily 03:00"),
    ScheduleKind("check", "check every event graph", NoOptions, "daily 04:00", on=True),
)


class Schedule(Frozen):
    """A schedule; ``options`` are those of its kind, as JSON."""

    name: str
    kind: str
    on: bool = True
    options: dict[str, Any] = Field(default={})


class ScheduleDraft(Schedule):
    """A requested schedule."""

    when: When


class ScheduleRun(Frozen):
    """How a run of a schedule ended, or that it is running: ``state`` is Prefect's name for it."""

    id: str
    state: str
    told: str
    at: datetime | None


class ScheduleEntry(Schedule):
    """A schedule and its current state. ``declared``: it comes from ``homer.toml``."""

    when: str
    declared: bool
    next: datetime | None
    last: ScheduleRun | None


def kind_named(name: str) -> ScheduleKind:
    """Return the kind of that name.

    Raises:
        NotFound: there is none.
    """
    match = next((kind for kind in KINDS if kind.name == name), None)
    if match is None:
        known = ", ".join(kind.name for kind in KINDS)
        raise NotFound(f"there is no schedule of the kind {name!r}; known kinds: {known}")
    return match


def parse_schedule(name: str, table: Mapping[str, Any]) -> ScheduleDraft:
    """Return a schedule from a table with ``kind`` (else its name), ``when``, ``on`` and options.

    Raises:
        InputError: the name or a value is invalid; the message says which.
        NotFound: there is no such kind.
    """
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name of a schedule: small letters, digits, - and _")
    rest = dict(table)
    kind = kind_named(str(rest.pop("kind", name)))
    when, on = parse_when(str(rest.pop("when", kind.when))), rest.pop("on", True)
    if not isinstance(on, bool):
        raise InputError(f"schedule {name}: on is true or false")
    try:
        options = kind.options.model_validate(rest)
    except ValidationError as error:
        raise InputError(f"schedule {name}: {first_problem(error)}") from error
    values = options.model_dump(mode="json", exclude_none=True)
    return ScheduleDraft(name=name, kind=kind.name, when=when, on=on, options=values)


def parse_options(kind: ScheduleKind, pairs: Iterable[str]) -> dict[str, Any]:
    """Parse options of the form ``key=value``; a list is given by repeating the key.

    Raises:
        InputError: a pair has no ``=``, or a key that is no list is repeated.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"{pair!r}: write options as KEY=VALUE")
        field = kind.options.model_fields.get(key)
        if field is not None and get_origin(field.annotation) is tuple:
            options[key] = [*options.get(key, ()), value]
        elif key in options:
            raise InputError(f"{key} is given twice")
        else:
            options[key] = value
    return options


def declared_schedules(config: Path) -> dict[str, ScheduleDraft]:
    """Return the schedules of the file by name; none if the file does not exist.

    Raises:
        SetupError: the file cannot be read, or a schedule in it is invalid.
    """
    try:
        table = tomllib.loads(config.read_text(encoding="utf-8")).get("schedules", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"{config} cannot be read: {error}") from error
    try:
        return {name: parse_schedule(name, dict(options)) for name, options in dict(table).items()}
    except (InputError, TypeError, ValueError) as error:
        raise SetupError(f"{config}: {error}") from error


def schedule_digest(schedule: ScheduleDraft) -> str:
    """Return a digest that shows whether the schedule has been changed in the file."""
    return f"homer.toml {hashlib.sha256(schedule.model_dump_json().encode()).hexdigest()[:16]}"


# Access to the schedules.


@contextmanager
def open_schedules(
    home: Home, api: str | None = None, *, look: bool = False
) -> Iterator[ScheduleDeployments]:
    """Open the schedules of a library, with those of ``homer.toml`` and the default ones.

    Args:
        api: Prefect's API; None: that of ``$PREFECT_API_URL``, else Homer's own server, started.
        look: only read the schedules; create and change nothing.

    Raises:
        SetupError: the server does not start or cannot be reached, ``homer.toml`` is wrong, or
            the library cannot be opened.
    """
    with open_store(home) as store:
        library = library_id(store)
    with report_to_prefect(home, api or api_url(home)):
        # Prefect reads its settings when it is imported: now they are set.
        from prefect.client.orchestration import get_client

        from flows.schedules.deployments import ScheduleDeployments

        try:
            with get_client(sync_client=True) as client:
                deployments = ScheduleDeployments(client, library)
                if not look:
                    deployments.begin(declared_schedules(home.config))
                yield deployments
        except httpx.HTTPError as error:
            raise SetupError(f"Prefect's server cannot be reached or refused: {error}") from error


def start_schedules(home: Home, api: str) -> str:
    """Start the worker that runs the schedules; return the address of its health check.

    First the state of an earlier worker is cleaned up: runs whose process is gone are marked as
    crashed, interrupted streams as ended, and of the missed runs of each schedule only the last
    is kept.

    Raises:
        SetupError: the worker does not start, or ``homer.toml`` is wrong.
    """
    with open_store(home) as store:
        library = library_id(store)
        end_interrupted_streams(store)
    with open_schedules(home, api) as deployments:
        # It imports Prefect, whose settings are set by now.
        from flows.prefect_executor import mark_dead_runs

        mark_dead_runs(library)
        deployments.skip_missed(datetime.now(UTC))
    return ScheduleWorker(home).start(api, work_pool_name(library))
