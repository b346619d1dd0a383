"""Changing a schedule by a few words: what is not told of it stays as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flows.schedules.kinds import ScheduleDraft, kind_named, options_from, planned

if TYPE_CHECKING:
    from flows.schedules.deployments import ScheduleEntry


def changed(
    entries: Sequence[ScheduleEntry],
    name: str,
    kind: str | None,
    when: str | None,
    pairs: Sequence[str],
    *,
    on: bool,
) -> ScheduleDraft:
    """The schedule ``name`` as it is to be.

    Args:
        entries: the schedules as they stand.
        name: one of them, or a new one.
        kind: what it does; None: as before, else as its name says.
        when: None: as before, else as its kind says.
        pairs: options as ``key=value``, over those of before; an empty value takes one away.
        on: whether it runs.

    Raises:
        InputError: something of it cannot be used; says what.
        NotFound: there is no such kind.
    """
    before = next((one for one in entries if one.name == name), None)
    if before is not None and kind not in (None, before.kind):
        before = None
    known = kind_named(kind or (before.kind if before else name))
    told = options_from(known, pairs)
    options = {**(before.options if before else {}), **told}
    kept = {key: value for key, value in options.items() if value not in ("", [""])}
    time = when or (before.when if before else known.when)
    return planned(name, {**kept, "kind": known.name, "when": time, "on": on})
