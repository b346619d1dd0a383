"""The schedules of ``homer.toml``: ``[schedules.NAME]`` with when, on, and the kind's options."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

from domain.errors import InputError, SetupError
from flows.schedules.kinds import ScheduleDraft, parse_schedule


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
