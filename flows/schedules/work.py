"""What schedules do, without Prefect: each gives in words what it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from domain.errors import InputError, NotFound
from flows.ingest_files import FileOutcome
from flows.ingest_steps import Listener
from flows.learning import learn_all
from flows.retention import retain as run_retention
from flows.schedules.backups import back_up_into
from flows.schedules.fetching import FetchArchive, fetch_all, fetcher
from flows.schedules.folder import not_taken, stand_of, watch_folder, watch_once
from flows.schedules.kinds import BackupOptions, FetchOptions, LearnOptions, WatchOptions
from flows.stream.interrupted import settle_streams
from flows.workspace import LOOKS_EVERY_S, Workspace
from perception.source import media_in
from skills.learn import waiting
from views.library import Checked, check_video, list_library

NAMED = 5
"""How many troubles are named in one line."""

PATIENCE_S = 120.0
"""A back-up that has begun keeps whoever deletes waiting, so it stands back no longer in all."""


@dataclass(frozen=True)
class JobReport:
    """What a job found; ``ok``: nobody need look."""

    text: str
    ok: bool = True


class Polite:
    """Hears how far a work is, and has it stand back between its steps while somebody waits."""

    def __init__(self, desk: Workspace, wait: Callable[[float], None] = time.sleep) -> None:
        self._desk, self._wait = desk, wait
        self._left, self._looked = PATIENCE_S, -LOOKS_EVERY_S

    def start(self, label: str, total: int, done: int = 0) -> None:
        """Between two steps."""
        del label, total, done
        self.step()

    def step(self, steps: int = 1) -> None:
        """Between two steps, of which there may be many a second."""
        del steps
        if time.monotonic() - self._looked >= LOOKS_EVERY_S:
            self._left -= self._desk.give_way(self._wait, self._left)
            self._looked = time.monotonic()


def watch(
    desk: Workspace, options: WatchOptions, listener: Listener, wait: Callable[[float], None]
) -> JobReport:
    """Watch what is new or changed in a folder.

    Raises:
        InputError: the folder is not there.
        SetupError: the database or a model is missing.
    """
    return _of(watch_folder(desk, options.folder, options.stable_s, listener, wait))


def fetch(desk: Workspace, options: FetchOptions, listener: Listener) -> JobReport:
    """Fetch what is new at addresses, and watch it.

    Raises:
        InputError: the list of addresses cannot be read.
        SetupError: what fetches is not installed, or the database or a model is missing.
    """
    folder = options.folder or desk.home.root / "fetched"
    urls = [*options.urls, *_listed(options.file)]
    got = fetch_all(desk.store, urls, folder, options.most, fetcher())
    there = {*media_in(folder), *got.files}
    # A folder of the user's has files too that nobody fetched; an earlier run's may be in either.
    ours = FetchArchive(desk.store).brought(there) if options.folder else there
    found = [one for path in sorted(ours) if (one := stand_of(path))]
    seen = _of(watch_once(desk, not_taken(desk.store, found), listener))
    text = f"{len(got.files)} fetched; {seen.text}"
    return JobReport("; ".join([text, *got.faults[:NAMED]]), seen.ok and not got.faults)


def learn(desk: Workspace, options: LearnOptions) -> JobReport:
    """Learn from judged answers, once there are ``options.answers`` of them."""
    there = waiting(desk.store)
    if there < options.answers:
        return JobReport(f"{there} of {options.answers} judged answers are there")
    batches = list(learn_all(desk))
    written = [one.name for batch in batches for one in batch.written]
    banned = [name for batch in batches for name in batch.banned]
    answers = sum(batch.answers for batch in batches)
    return JobReport(f"learned from {answers} answers: {len(written)} skills, {len(banned)} banned")


def retain(desk: Workspace, now: datetime) -> JobReport:
    """Take from each video what its age does not keep, as the settings of the desk say.

    Raises:
        DatabaseError: the database is gone.
    """
    if not desk.settings.retain.tiers:
        return JobReport("nothing is set to go: see [[settings.retain.tiers]] in docs/privacy.md")
    found = run_retention(desk, now)
    return JobReport(f"{len(found.videos)} videos keep less: {found.bytes / 1e6:.1f} MB are gone")


def backup(desk: Workspace, options: BackupOptions, now: datetime) -> JobReport:
    """Back the library up once nobody waits, and keep the latest.

    Raises:
        InputError: the folder cannot be made or written.
        DatabaseError: the database is gone.
    """
    folder = options.folder or desk.home.root / "backups"
    desk.give_way()
    out, gone = back_up_into(desk.store, folder, options.keep, now, Polite(desk))
    size = out.stat().st_size / 1e6
    return JobReport(f"{out}: {size:.1f} MB" + (f"; {len(gone)} old ones removed" if gone else ""))


def check(desk: Workspace) -> JobReport:
    """Check the event graph of every video; those with findings are told by their ids."""
    settle_streams(desk.store)
    checked = list(_checked(desk))
    bad = [one for one in checked if one.findings]
    if not bad:
        return JobReport(f"{len(checked)} videos are consistent")
    found = [f"{one.video}: {len(one.findings)} findings" for one in bad]
    return JobReport(f"{_named(found)}; `homer check VIDEO` shows them", ok=False)


def _checked(desk: Workspace) -> Iterator[Checked]:
    for one in list_library(desk.store):
        desk.give_way()
        with suppress(NotFound):  # It was deleted meanwhile.
            yield check_video(desk.store, one.id)


def _of(outcomes: Iterable[FileOutcome]) -> JobReport:
    """What became of files in a line; a file that cannot be watched is named."""
    every = list(outcomes)
    fresh = sum(1 for one in every if one.watched and one.watched.fresh)
    bad = [str(one.error) for one in every if one.error is not None]
    some = (one.watched for one in every if one.watched and one.watched.failed)
    left = [f"{one.video.id}: clips are left" for one in some]
    if not every:
        return JobReport("nothing new")
    alone = sum(1 for one in every if one.watched is None and one.error is None)
    text = f"{fresh} watched, {len(every) - fresh - len(bad) - alone} known already"
    kept_out = f"{alone} left alone, since they were deleted from memory" if alone else ""
    told = filter(None, [text, kept_out, _named([*bad, *left])])
    return JobReport("; ".join(told), ok=not bad and not left)


def _named(troubles: list[str]) -> str:
    more = f" and {len(troubles) - NAMED} more" if len(troubles) > NAMED else ""
    return "; ".join(troubles[:NAMED]) + more


def _listed(file: Path | None) -> list[str]:
    """The addresses of a file, one a line; ``#`` begins a remark.

    Raises:
        InputError: it cannot be read.
    """
    if file is None:
        return []
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
