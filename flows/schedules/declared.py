"""The schedules of ``homer.toml``: ``[schedules.NAME]`` with when, on, and the kind's options."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path

from domain.errors import InputError, SetupError
from flows.schedules.kinds import ScheduleDraft, planned


def declared(config: Path) -> dict[str, ScheduleDraft]:
    """The schedules that the file says, by name; none where there is no file.

    Raises:
        SetupError: the file cannot be read, or a schedule in it cannot be used; says which.
    """
    try:
        table = tomllib.loads(config.read_text(encoding="utf-8")).get("schedules", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"{config} cannot be read: {error}") from error
    try:
        return {name: planned(name, dict(one)) for name, one in dict(table).items()}
    except (InputError, TypeError, ValueError) as error:
        raise SetupError(f"{config}: {error}") from error


def digest(one: ScheduleDraft) -> str:
    """Tells whether a schedule was changed in the file since it was last taken from there."""
    return f"homer.toml {hashlib.sha256(one.model_dump_json().encode()).hexdigest()[:16]}"
