"""Tables of profiles as they are written (TOML), merged over those they are based on."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.errors import NotFound, SetupError

if TYPE_CHECKING:
    from models.profile import Profile
    from models.specs import Price

BUNDLED = Path(__file__).with_name("profiles")


def bundled_profiles() -> tuple[str, ...]:
    """Return the names of the profiles that come with Homer."""
    return tuple(sorted(path.stem for path in BUNDLED.glob("*.toml")))


def resolve_table(wanted: str, extra: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
    """Return the table of a profile merged over those it is based on.

    Args:
        wanted: a profile's name, or the path of a TOML file.
        extra: the tables of the profiles in ``homer.toml``, by name.
        seen: the profiles that are based on it.

    Raises:
        NotFound: there is no such profile.
        SetupError: it cannot be read, or profiles are based on each other.
    """
    if wanted in seen:
        raise SetupError(f"profiles based on each other: {' -> '.join([*seen, wanted])}")
    table = _table(wanted, extra)
    base = table.pop("base", None)
    if not isinstance(base, str | None):
        raise SetupError(f"the profile {wanted!r} is wrong at base: it names another profile")
    return table if base is None else _merge(resolve_table(base, extra, (*seen, wanted)), table)


def _table(wanted: str, extra: dict[str, Any]) -> dict[str, Any]:
    if wanted.endswith(".toml"):
        return read_toml(Path(wanted))
    known = bundled_profiles()
    if wanted not in known and wanted not in extra:
        names = ", ".join(sorted({*known, *extra}))
        raise NotFound(f"there is no profile {wanted!r}; known profiles: {names}")
    bundled = read_toml(BUNDLED / f"{wanted}.toml") if wanted in known else {}
    return _merge(bundled, extra.get(wanted, {}))


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge ``above`` over ``below``, table by table."""
    both = dict(below)
    for key, value in above.items():
        old = both.get(key)
        tables = isinstance(old, dict) and isinstance(value, dict)
        both[key] = _merge(old, value) if tables and isinstance(old, dict) else value
    return both


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises:
        NotFound: there is none.
        SetupError: it cannot be read as TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFound(f"there is no profile file {path}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error


def with_prices(profile: Profile, prices: Mapping[str, Price]) -> Profile:
    """Return the profile with prices of the home's table, where it has none itself."""
    chat = {
        role: spec.model_copy(update={"price": spec.price or prices.get(spec.model)})
        for role, spec in profile.chat.items()
    }
    price = profile.encoder.price or prices.get(profile.text)
    encoder = profile.encoder.model_copy(update={"price": price})
    return profile.model_copy(update={"chat": chat, "encoder": encoder})
