"""Changing a schedule: what is not given stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flows.schedules.kinds import ScheduleDraft, kind_named, parse_options, parse_schedule

if TYPE_CHECKING:
    from flows.schedules.deployments import ScheduleEntry


def changed_schedule(
    entries: Sequence[ScheduleEntry],
    name: str,
    kind: str | None,
    when: str | None,
    pairs: Sequence[str],
    *,
    on: bool,
) -> ScheduleDraft:
    """Return the schedule ``name`` with its changes.

    Args:
        name: one of them, or a new one.
        kind: None: as before; for a new one, the kind of that name.
        when: None: as before; for a new one, the default of its kind.
        pairs: options as ``key=value``, which replace those of before; an empty value removes one.
        on: whether it runs.

    Raises:
        InputError: an option or time is invalid; the message says which.
        NotFound: there is no such kind.
    """
    current = next((entry for entry in entries if entry.name == name), None)
    if current is not None and kind not in (None, current.kind):
        current = None
    spec = kind_named(kind or (current.kind if current else name))
    given = parse_options(spec, pairs)
    options = {**(current.options if current else {}), **given}
    present = {key: value for key, value in options.items() if value not in ("", [""])}
    time = when or (current.when if current else spec.when)
    return parse_schedule(name, {**present, "kind": spec.name, "when": time, "on": on})
