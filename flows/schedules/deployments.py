"""Schedules as Prefect deployments, which hold their only state.

Commands, the app and Prefect's own pages thus change the same objects. Import this module only
after Prefect's environment is set; ``flows.schedules.kinds`` opens it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
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
    StateType,
)
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectAlreadyExists
from prefect.states import Cancelled
from tzlocal import get_localzone_name

from domain.errors import InputError, NotFound
from domain.watching import When
from flows.schedules.kinds import (
    KINDS,
    ScheduleDraft,
    ScheduleEntry,
    ScheduleRun,
    kind_named,
    parse_schedule,
    schedule_digest,
)
from services.supervisor import library_tag_name, schedule_name, work_pool_name

AT_ONCE = 2
"""How many scheduled jobs run at a time, so that a back-up need not wait for a folder."""

NOW, LATER = "now", "default"
"""The queues of the pool: runs that a person starts go before scheduled ones."""

TAG = "homer-schedule"


class ScheduleDeployments:
    """The schedules of one library; those of other libraries on the server are not seen."""

    def __init__(self, client: SyncPrefectClient, library: str) -> None:
        self._client, self.library = client, library
        self._tags, self.pool = [TAG, library_tag_name(library)], work_pool_name(library)

    def begin(self, wanted: dict[str, ScheduleDraft]) -> None:
        """Create the pool and the missing schedules; what a user changed stays as it is.

        Args:
            wanted: the schedules of ``homer.toml``. One of them is applied when it is new or was
                changed in the file, and removed when it is no longer in there.
        """
        # No command, environment or folder comes from a run; no ``env``, since Prefect would merge
        # the variables of a run into it.
        template: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
        pool = WorkPoolCreate(
            name=self.pool, type="process", base_job_template=template, concurrency_limit=AT_ONCE
        )
        try:
            self._client.create_work_pool(pool)
        except ObjectAlreadyExists:
            if self._client.read_work_pool(self.pool).base_job_template != template:
                changed = WorkPoolUpdate(base_job_template=template)
                self._client.update_work_pool(self.pool, changed)
        else:
            self._client.create_work_queue(name=NOW, work_pool_name=self.pool, priority=1)
        known = self._deployments()
        for name, draft in wanted.items():
            if name not in known or known[name].version != schedule_digest(draft):
                self.put(draft, schedule_digest(draft))
        for name, deployment in known.items():
            if name not in wanted and _is_declared(deployment):
                self._client.delete_deployment(deployment.id)
        present = {
            *wanted,
            *(name for name, deployment in known.items() if not _is_declared(deployment)),
        }
        for kind in KINDS:
            if kind.is_ready and kind.name not in present:
                self.put(parse_schedule(kind.name, {"on": kind.on}))

    def put(self, draft: ScheduleDraft, version: str = "") -> None:
        """Create a schedule, or change the one of its name.

        Args:
            version: the digest of its part of ``homer.toml``; by default the same as before, so
                that a user's change stays until the file changes too.

        Raises:
            InputError: its cron line is invalid.
        """
        kind = kind_named(draft.kind)
        zone, when = get_localzone_name(), draft.when
        schedule: CronSchedule | IntervalSchedule
        if when.every_s is not None:
            schedule = IntervalSchedule(interval=timedelta(seconds=when.every_s), timezone=zone)
        else:
            try:
                schedule = CronSchedule(cron=when.cron or "", timezone=zone)
            except ValueError as error:
                raise InputError(f"{when.cron!r} is no cron line") from error
        flow, current = (
            self._client.create_flow_from_name(kind.name),
            self._deployments().get(draft.name),
        )
        if current is not None and current.flow_id != flow:
            self._client.delete_deployment(current.id)
        self._client.create_deployment(
            flow,
            f"{draft.name}@{work_pool_name(self.library)}",  # Unique for its flow.
            version=version or (current.version if current else None),
            schedules=[DeploymentScheduleCreate(schedule=schedule, active=True)],
            concurrency_limit=1,
            concurrency_options=ConcurrencyOptions(
                collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW
            ),
            parameters=draft.options,
            description=kind.does,
            work_pool_name=self.pool,
            work_queue_name=LATER,
            tags=self._tags,
            entrypoint=kind.flow,
            paused=not draft.on,
            parameter_openapi_schema=kind.options.model_json_schema(),
            enforce_parameter_schema=False,
        )

    def entries(self) -> list[ScheduleEntry]:
        """Return all schedules, by name."""
        return [self._entry(deployment) for _, deployment in sorted(self._deployments().items())]

    def entry(self, name: str) -> ScheduleEntry:
        """Return the schedule of that name.

        Raises:
            NotFound: there is none.
        """
        return self._entry(self._named(name))

    def pause(self, name: str) -> None:
        """Stop running it until it is resumed; a current run finishes.

        Raises:
            NotFound: there is none of that name.
        """
        self._client.pause_deployment(self._named(name).id)

    def resume(self, name: str) -> None:
        """Run it again at its times.

        Raises:
            NotFound: there is none of that name.
        """
        self._client.resume_deployment(self._named(name).id)

    def run(self, name: str) -> str:
        """Run it now, before scheduled runs; return the id of the flow run.

        Raises:
            NotFound: there is none of that name.
        """
        deployment = self._named(name)
        run = self._client.create_flow_run_from_deployment(deployment.id, work_queue_name=NOW)
        return str(run.id)

    def remove(self, name: str) -> None:
        """Remove a schedule; its runs stay on record.

        Raises:
            NotFound: there is none of that name.
            InputError: it is a default schedule, which can only be paused.
        """
        deployment = self._named(name)
        if any(kind.is_ready and kind.name == name for kind in KINDS):
            raise InputError(f"{name} is always there: `homer schedule pause {name}` keeps it off")
        self._client.delete_deployment(deployment.id)

    def skip_missed(self, now: datetime) -> int:
        """Cancel the runs missed while nothing ran, except the last of each schedule.

        Returns:
            How many were cancelled.
        """
        scheduled = FlowRunFilter(
            state=_state([StateType.SCHEDULED]),
            expected_start_time=FlowRunFilterExpectedStartTime(before_=now - timedelta(minutes=1)),
        )
        missed = 0
        for deployment in self._deployments().values():
            late = self._runs(
                deployment, scheduled, FlowRunSort.EXPECTED_START_TIME_DESC, limit=200
            )
            for run in late[1:]:
                self._client.set_flow_run_state(
                    run.id, Cancelled(message="missed while Homer did not run"), force=True
                )
            missed += len(late[1:])
        return missed

    def _deployments(self) -> dict[str, DeploymentResponse]:
        tagged = DeploymentFilter(tags=DeploymentFilterTags(all_=self._tags))
        deployments = self._client.read_deployments(deployment_filter=tagged)
        return {schedule_name(deployment.name): deployment for deployment in deployments}

    def _named(self, name: str) -> DeploymentResponse:
        deployments = self._deployments()
        if name not in deployments:
            known = ", ".join(sorted(deployments)) or "none"
            raise NotFound(f"there is no schedule {name!r}; there are: {known}")
        return deployments[name]

    def _entry(self, deployment: DeploymentResponse) -> ScheduleEntry:
        scheduled = FlowRunFilter(state=_state([StateType.SCHEDULED]))
        waiting = (StateType.SCHEDULED, StateType.PENDING)
        started = FlowRunFilter(state=_state([kind for kind in StateType if kind not in waiting]))
        upcoming = self._runs(deployment, scheduled, FlowRunSort.NEXT_SCHEDULED_START_TIME_ASC)
        last = self._runs(deployment, started, FlowRunSort.EXPECTED_START_TIME_DESC)
        ended = None
        if last:
            state = last[0].state
            ended = ScheduleRun(
                id=str(last[0].id),
                state=(state.name or "") if state else "",
                told=(state.message or "") if state else "",
                at=last[0].end_time or last[0].start_time,
            )
        return ScheduleEntry(
            name=schedule_name(deployment.name),
            kind=self._client.read_flow(deployment.flow_id).name,
            when=", ".join(str(_as_when(schedule.schedule)) for schedule in deployment.schedules)
            or "never",
            on=not deployment.paused and any(schedule.active for schedule in deployment.schedules),
            options=deployment.parameters,
            declared=_is_declared(deployment),
            next=upcoming[0].next_scheduled_start_time
            if upcoming and not deployment.paused
            else None,
            last=ended,
        )

    def _runs(
        self, deployment: DeploymentResponse, base: FlowRunFilter, sort: FlowRunSort, limit: int = 1
    ) -> list[FlowRun]:
        of_deployment = FlowRunFilterDeploymentId(any_=[deployment.id])
        run_filter = base.model_copy(update={"deployment_id": of_deployment})
        return self._client.read_flow_runs(flow_run_filter=run_filter, sort=sort, limit=limit)


def _state(kinds: Sequence[StateType]) -> FlowRunFilterState:
    return FlowRunFilterState(type=FlowRunFilterStateType(any_=list(kinds)))


def _is_declared(deployment: DeploymentResponse) -> bool:
    return (deployment.version or "").startswith("homer.toml ")


def _as_when(schedule: Any) -> When | str:
    """Return when a schedule runs; one made on Prefect's pages may be of another kind."""
    if isinstance(schedule, CronSchedule):
        return When(cron=schedule.cron)
    if isinstance(schedule, IntervalSchedule):
        return When.model_construct(every_s=int(schedule.interval.total_seconds()))
    return "by a rule of Prefect's"


FILE = Path(__file__).with_name("process_job.json")
