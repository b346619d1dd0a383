"""Schedules as Prefect keeps them: each a deployment, whose state is the only one there is.

So what a command, the app or Prefect's own pages change is the same thing. Import this module only
after Prefect's environment is set; ``flows.schedules.api`` opens it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import (
    DeploymentScheduleCreate,
    WorkPoolCreate,
    WorkPoolUpdate,
)
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterTags,
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import (
    ConcurrencyLimitStrategy,
    ConcurrencyOptions,
    FlowRun,
    State,
    StateType,
)
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectAlreadyExists
from prefect.states import Cancelled
from tzlocal import get_localzone_name

from domain.base import Frozen
from domain.errors import InputError, NotFound
from domain.schedules import When
from flows.schedules.declared import digest
from flows.schedules.job_template import process_job
from flows.schedules.kinds import KINDS, ScheduleDraft, kind_named, planned
from services.library_tag import name_in, name_of, pool_of, tag_of

AT_ONCE = 2
"""Scheduled jobs that run at a time: a back-up need not wait for a folder."""

NOW, LATER = "now", "default"
"""The queues of the pool: what a person asks for goes before what the clock asks for."""

TAG = "homer-schedule"


class ScheduleRun(Frozen):
    """How a run of a schedule ended, or that it goes on: ``state`` is Prefect's name for it."""

    id: str
    state: str
    told: str
    at: datetime | None


class ScheduleEntry(Frozen):
    """A schedule as it stands. ``declared``: it comes from ``homer.toml``."""

    name: str
    kind: str
    when: str
    on: bool
    options: dict[str, Any]
    declared: bool
    next: datetime | None
    last: ScheduleRun | None


class Deployments:
    """The schedules of one library; those of others at the same server are not seen."""

    def __init__(self, client: SyncPrefectClient, library: str) -> None:
        self._client, self.library = client, library
        self._tags, self.pool = [TAG, tag_of(library)], pool_of(library)

    def begin(self, wanted: dict[str, ScheduleDraft]) -> None:
        """See that pool and schedules are there; what somebody changed since stays as it is.

        Args:
            wanted: what ``homer.toml`` says. A schedule of it is taken over when it is new or was
                changed in the file, and goes when it is no longer in there.
        """
        self._make_pool()
        known = self._deployments()
        for name, one in wanted.items():
            if name not in known or known[name].version != digest(one):
                self.put(one, digest(one))
        for name, found in known.items():
            if name not in wanted and _is_declared(found):
                self._client.delete_deployment(found.id)
        there = {*wanted, *(name for name, found in known.items() if not _is_declared(found))}
        for kind in KINDS:
            if kind.is_ready and kind.name not in there:
                self.put(planned(kind.name, {"on": kind.on}))

    def put(self, one: ScheduleDraft, version: str = "") -> None:
        """Make a schedule, or change the one of its name.

        Args:
            one: the schedule.
            version: what ``homer.toml`` said of it; by default the same as before, so that what
                a person changes stays until the file changes too.

        Raises:
            InputError: its cron line says no time.
        """
        kind = kind_named(one.kind)
        when = _schedule(one.when)
        flow, before = self._client.create_flow_from_name(kind.name), self._known(one.name)
        if before is not None and before.flow_id != flow:
            self._client.delete_deployment(before.id)
        self._client.create_deployment(
            flow,
            name_in(self.library, one.name),
            version=version or (before.version if before else None),
            schedules=[DeploymentScheduleCreate(schedule=when, active=True)],
            concurrency_limit=1,
            concurrency_options=ConcurrencyOptions(
                collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW
            ),
            parameters=one.options,
            description=kind.does,
            work_pool_name=self.pool,
            work_queue_name=LATER,
            tags=self._tags,
            entrypoint=kind.flow,
            paused=not one.on,
            parameter_openapi_schema=kind.options.model_json_schema(),
            enforce_parameter_schema=False,
        )

    def entries(self) -> list[ScheduleEntry]:
        """All schedules, by name."""
        return [self._entry(one) for _, one in sorted(self._deployments().items())]

    def entry(self, name: str) -> ScheduleEntry:
        """The schedule of that name.

        Raises:
            NotFound: there is none.
        """
        return self._entry(self._named(name))

    def pause(self, name: str) -> None:
        """Run it no more until it is resumed; a run that has begun goes on.

        Raises:
            NotFound: there is none of that name.
        """
        self._client.pause_deployment(self._named(name).id)

    def resume(self, name: str) -> None:
        """Run it again when it is time.

        Raises:
            NotFound: there is none of that name.
        """
        self._client.resume_deployment(self._named(name).id)

    def run(self, name: str) -> str:
        """Run it now, before what only the clock asks for; returns the id of the flow run.

        Raises:
            NotFound: there is none of that name.
        """
        found = self._named(name)
        run = self._client.create_flow_run_from_deployment(found.id, work_queue_name=NOW)
        return str(run.id)

    def remove(self, name: str) -> None:
        """Take a schedule away; its runs stay on record.

        Raises:
            NotFound: there is none of that name.
            InputError: it is one that is always there, which can be paused.
        """
        found = self._named(name)
        if any(kind.is_ready and kind.name == name for kind in KINDS):
            raise InputError(f"{name} is always there: `homer schedule pause {name}` keeps it off")
        self._client.delete_deployment(found.id)

    def skip_missed(self, now: datetime) -> int:
        """Of the runs that were missed while nothing ran, keeps the last of each schedule.

        Returns:
            How many are left out.
        """
        asked = FlowRunFilter(
            state=_state([StateType.SCHEDULED]),
            expected_start_time=FlowRunFilterExpectedStartTime(before_=now - timedelta(minutes=1)),
        )
        missed = 0
        for one in self._deployments().values():
            late = self._runs(one, asked, FlowRunSort.EXPECTED_START_TIME_DESC, limit=200)
            for run in late[1:]:
                self._client.set_flow_run_state(run.id, _missed(), force=True)
            missed += len(late[1:])
        return missed

    def _make_pool(self) -> None:
        template = process_job()
        pool = WorkPoolCreate(
            name=self.pool, type="process", base_job_template=template, concurrency_limit=AT_ONCE
        )
        try:
            self._client.create_work_pool(pool)
        except ObjectAlreadyExists:
            if self._client.read_work_pool(self.pool).base_job_template != template:
                changed = WorkPoolUpdate(base_job_template=template)
                self._client.update_work_pool(self.pool, changed)
            return
        self._client.create_work_queue(name=NOW, work_pool_name=self.pool, priority=1)

    def _deployments(self) -> dict[str, DeploymentResponse]:
        tagged = DeploymentFilter(tags=DeploymentFilterTags(all_=self._tags))
        found = self._client.read_deployments(deployment_filter=tagged)
        return {name_of(one.name): one for one in found}

    def _known(self, name: str) -> DeploymentResponse | None:
        return self._deployments().get(name)

    def _named(self, name: str) -> DeploymentResponse:
        found = self._deployments()
        if name not in found:
            known = ", ".join(sorted(found)) or "none"
            raise NotFound(f"there is no schedule {name!r}; there are: {known}")
        return found[name]

    def _entry(self, one: DeploymentResponse) -> ScheduleEntry:
        coming = FlowRunFilter(state=_state([StateType.SCHEDULED]))
        waiting = (StateType.SCHEDULED, StateType.PENDING)
        begun = FlowRunFilter(state=_state([kind for kind in StateType if kind not in waiting]))
        soon = self._runs(one, coming, FlowRunSort.NEXT_SCHEDULED_START_TIME_ASC)
        last = self._runs(one, begun, FlowRunSort.EXPECTED_START_TIME_DESC)
        return ScheduleEntry(
            name=name_of(one.name),
            kind=self._client.read_flow(one.flow_id).name,
            when=", ".join(str(_when(found.schedule)) for found in one.schedules) or "never",
            on=not one.paused and any(found.active for found in one.schedules),
            options=one.parameters,
            declared=_is_declared(one),
            next=soon[0].next_scheduled_start_time if soon and not one.paused else None,
            last=_ran(last[0]) if last else None,
        )

    def _runs(
        self, one: DeploymentResponse, asked: FlowRunFilter, sort: FlowRunSort, limit: int = 1
    ) -> list[FlowRun]:
        of = FlowRunFilterDeploymentId(any_=[one.id])
        wanted = asked.model_copy(update={"deployment_id": of})
        return self._client.read_flow_runs(flow_run_filter=wanted, sort=sort, limit=limit)


def _state(kinds: Sequence[StateType]) -> FlowRunFilterState:
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=list(kinds)))


def _missed() -> State[None]:
    return Cancelled(message="missed while Homer did not run")


def _is_declared(one: DeploymentResponse) -> bool:
    return (one.version or "").startswith("homer.toml ")


def _ran(run: FlowRun) -> ScheduleRun:
    state = run.state
    return ScheduleRun(
        id=str(run.id),
        state=(state.name or "") if state else "",
        told=(state.message or "") if state else "",
        at=run.end_time or run.start_time,
    )


def _schedule(when: When) -> CronSchedule | IntervalSchedule:
    zone = get_localzone_name()
    if when.every_s is not None:
        return IntervalSchedule(interval=timedelta(seconds=when.every_s), timezone=zone)
    try:
        return CronSchedule(cron=when.cron or "", timezone=zone)
    except ValueError as error:
        raise InputError(f"{when.cron!r} is no cron line") from error


def _when(found: Any) -> When | str:
    """When a schedule runs; one that was made on Prefect's pages may be of another kind."""
    if isinstance(found, CronSchedule):
        return When(cron=found.cron)
    if isinstance(found, IntervalSchedule):
        return When.model_construct(every_s=int(found.interval.total_seconds()))
    return "by a rule of Prefect's"
