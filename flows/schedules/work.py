"""The jobs of schedules, without Prefect: each returns a report."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path

from domain.built import Period
from domain.errors import Busy, InputError, ModelError, NotFound
from domain.watching import Watched
from domain.words import counted
from flows.alert_delivery import judge_and_deliver
from flows.build import build as build_memory
from flows.build import check_builds
from flows.check import VideoCheck, check_memory
from flows.executors import Executor
from flows.learning import learn_in_batches
from flows.recap import recap_model, write_recap
from flows.removal import retain as run_retention
from flows.schedules.fetching import (
    FetchArchive,
    fetch_all,
    file_stamp,
    make_folder,
    media_stamps,
    unchanged_files,
    unrecorded_files,
    video_fetcher,
    watch_new_files,
)
from flows.schedules.kinds import (
    BackupOptions,
    BuildOptions,
    FetchOptions,
    LearnOptions,
    RecapOptions,
    WatchOptions,
)
from flows.video_locks import end_interrupted_streams
from flows.watching import Listener
from flows.workspace import GIVE_WAY_POLL_S, Workspace
from perception.source import media_in
from skills.learn import count_waiting
from store.backup import back_up
from store.queries.videos import list_videos, video_titles
from strategies.registry import all_strategies, find_strategy

# Periodic back-ups, of which the latest are kept.

BACKUP_NAME_FORMAT = "homer-%Y%m%d-%H%M%S.homer"
_BACKUP_NAME = re.compile(r"homer-\d{8}-\d{6}\.homer")


def delete_old_backups(folder: Path, keep: int) -> list[Path]:
    """Delete the back-ups of schedules except the ``keep`` latest, in the order of their names."""
    backups = sorted(path for path in folder.iterdir() if _BACKUP_NAME.fullmatch(path.name))
    deleted = backups[:-keep]
    for path in deleted:
        path.unlink(missing_ok=True)
    return deleted


NAMED = 5
"""How many problems are named in one line."""

PATIENCE_S = 120.0
"""Seconds that a back-up waits in all, since deletions wait for a back-up that has started."""


@dataclass(frozen=True)
class JobReport:
    """The result of a job; ``ok``: nothing needs attention."""

    text: str
    ok: bool = True


class YieldingProgress:
    """A progress listener that makes background work wait while other work has priority."""

    def __init__(self, workspace: Workspace, wait: Callable[[float], None] = time.sleep) -> None:
        self._workspace, self._wait = workspace, wait
        self._patience_s, self._checked_at = PATIENCE_S, -GIVE_WAY_POLL_S

    def start(self, label: str, total: int, done: int = 0) -> None:
        """Give way before the first step."""
        del label, total, done
        self.step()

    def step(self, steps: int = 1) -> None:
        """Give way between two steps, at most once every ``GIVE_WAY_POLL_S`` seconds."""
        del steps
        if time.monotonic() - self._checked_at >= GIVE_WAY_POLL_S:
            self._patience_s -= self._workspace.give_way(self._wait, self._patience_s)
            self._checked_at = time.monotonic()


def watch(
    workspace: Workspace, options: WatchOptions, listener: Listener, wait: Callable[[float], None]
) -> JobReport:
    """Watch what is new or changed in a folder, at any depth.

    Raises:
        InputError: the folder does not exist.
        SetupError: the database or a model is missing.
    """
    found = unrecorded_files(workspace.store, media_stamps(options.folder))
    ready = unchanged_files(found, options.stable_s, wait)
    return _report_files(watch_new_files(workspace, ready, listener))


def fetch(workspace: Workspace, options: FetchOptions, listener: Listener) -> JobReport:
    """Fetch what is new at addresses, and watch it.

    Raises:
        InputError: the list of addresses cannot be read.
        SetupError: the fetcher is not installed, or the database or a model is missing.
    """
    folder = options.folder or workspace.home.root / "fetched"
    urls = [*options.urls, *_read_addresses(options.file)]
    fetched = fetch_all(workspace.store, urls, folder, options.most, video_fetcher())
    files = {*media_in(folder)[0], *fetched.files}
    # The user's folder may have files that were not fetched; both may have files of earlier runs.
    own = FetchArchive(workspace.store).already_fetched(files) if options.folder else files
    ready = [file for path in sorted(own) if (file := file_stamp(path))]
    report = _report_files(
        watch_new_files(workspace, unrecorded_files(workspace.store, ready), listener)
    )
    text = f"{len(fetched.files)} fetched; {report.text}"
    return JobReport("; ".join([text, *fetched.faults[:NAMED]]), report.ok and not fetched.faults)


def learn(workspace: Workspace, options: LearnOptions) -> JobReport:
    """Learn from judged answers, once there are ``options.answers`` of them."""
    count = count_waiting(workspace.store)
    if count < options.answers:
        return JobReport(f"{count} of {options.answers} judged answers are there")
    batches = list(learn_in_batches(workspace))
    written = [skill.name for batch in batches for skill in batch.written]
    banned = [name for batch in batches for name in batch.banned]
    answers = sum(batch.answers for batch in batches)
    skills = f"{counted(len(written), 'skill')}, {len(banned)} banned"
    return JobReport(f"learned from {counted(answers, 'answer')}: {skills}")


def recap(workspace: Workspace, options: RecapOptions, now: datetime) -> JobReport:
    """Write the recap of the day or hour before.

    Raises:
        NotFound: there is no such video.
        DatabaseError: the database is gone.
    """
    workspace.give_way()
    period = Period.at(options.period, now).before
    written = write_recap(workspace.store, period, options.video, recap_model(workspace))
    if written.file is None:
        return JobReport(f"nothing of {period.name} is in memory")
    return JobReport(f"{period.name}: {counted(len(written.recaps), 'video')} summed up")


def alerts(workspace: Workspace, executor: Executor) -> JobReport:
    """Judge the clips and deliver the events that wait, so that retries need no ingestion.

    Raises:
        DatabaseError: the database is gone.
    """
    return JobReport(judge_and_deliver(workspace, executor))


def retain(workspace: Workspace, now: datetime) -> JobReport:
    """Remove from each video what its age tier does not keep.

    Raises:
        DatabaseError: the database is gone.
    """
    if not workspace.settings.retain.tiers:
        return JobReport(
            "no retention tier is set: see [[settings.retain.tiers]] in docs/privacy.md"
        )
    retained = run_retention(workspace, now)
    return JobReport(
        f"{retained.bytes / 1e6:.1f} MB of {counted(len(retained.videos), 'video')} were deleted"
    )


def build(workspace: Workspace, options: BuildOptions) -> JobReport:
    """Build what is missing of the memory of strategies, video by video.

    Raises:
        NotFound: there is no strategy of a name.
        InputError: a named one builds no memory of its own.
        DatabaseError: the database is gone; what was built stays.
    """
    chosen = [find_strategy(name) for name in options.strategies]
    for strategy in chosen:
        check_builds(strategy)
    chosen = chosen or [one for one in all_strategies() if one.builds_memory]
    with workspace.store.begin() as session:
        titles = video_titles(session)
    clips, left = 0, []
    for video, strategy in product(titles, chosen):
        try:
            clips += build_memory(workspace, video, strategy, lambda *_: None).clips
        except NotFound:  # It was deleted in the meantime.
            continue
        except (Busy, ModelError) as error:
            left.append(f"{titles[video]}, {strategy.name}: {error}")
    text = f"{counted(clips, 'clip')} built for {', '.join(one.name for one in chosen)}"
    return JobReport(f"{text}; {_first_few(left)}" if left else text, ok=not left)


def backup(workspace: Workspace, options: BackupOptions, now: datetime) -> JobReport:
    """Write a back-up once nothing has priority, and keep the latest ones.

    Raises:
        InputError: the folder cannot be created or written.
        DatabaseError: the database is gone.
    """
    folder = options.folder or workspace.home.root / "backups"
    workspace.give_way()
    make_folder(folder)
    out = folder / now.strftime(BACKUP_NAME_FORMAT)
    back_up(workspace.store, out, YieldingProgress(workspace))
    # If no back-up could be written, none is deleted.
    deleted = delete_old_backups(folder, options.keep)
    size = out.stat().st_size / 1e6
    return JobReport(
        f"{out}: {size:.1f} MB" + (f"; {len(deleted)} old ones removed" if deleted else "")
    )


def check(workspace: Workspace) -> JobReport:
    """Check the event graph of every video; report videos with findings by their ids."""
    end_interrupted_streams(workspace.store)
    with workspace.store.begin() as session:
        videos = list_videos(session)
    results = list[VideoCheck]()
    for video in videos:
        workspace.give_way()
        with suppress(NotFound):  # It was deleted in the meantime.
            results.append(check_memory(workspace.store, video.id))
    bad = [result for result in results if result.findings]
    if not bad:
        return JobReport(f"{counted(len(results), 'video')} checked: consistent")
    lines = [f"{result.video}: {len(result.findings)} findings" for result in bad]
    return JobReport(f"{_first_few(lines)}; `homer check VIDEO` shows them", ok=False)


def _report_files(outcomes: Iterable[Watched]) -> JobReport:
    """Summarise the results of files in a line; a file that cannot be watched is named."""
    results = list(outcomes)
    fresh = sum(1 for result in results if result.fresh)
    errors = [result.error for result in results if result.error]
    incomplete = [f"{result.video}: clips are left" for result in results if result.failed]
    if not results:
        return JobReport("nothing new")
    skipped = sum(1 for result in results if not result.video and not result.error)
    text = f"{fresh} watched, {len(results) - fresh - len(errors) - skipped} known already"
    skipped_text = f"{skipped} left alone, since they were deleted from memory" if skipped else ""
    parts = filter(None, [text, skipped_text, _first_few([*errors, *incomplete])])
    return JobReport("; ".join(parts), ok=not errors and not incomplete)


def _first_few(problems: list[str]) -> str:
    more = f" and {len(problems) - NAMED} more" if len(problems) > NAMED else ""
    return "; ".join(problems[:NAMED]) + more


def _read_addresses(file: Path | None) -> list[str]:
    """Read the addresses of a file, one per line; ``#`` starts a comment.

    Raises:
        InputError: the file cannot be read.
    """
    if file is None:
        return []
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
