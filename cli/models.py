"""``homer models``: the weights of a profile, and fetching them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.console import note, say, say_json, say_table
from cli.options import Json, Profile
from domain.errors import NotFound
from models.fetch import FetchProgress
from models.hub import HubModel, is_hub_name
from models.manifest import weights_named
from models.profile import load_profile
from models.weights import FileState, FileStatus, status
from models.weights import pull as pull_weights
from store.home import Home

MEGABYTE = 1e6
LARGE = 50 * MEGABYTE
FEW = 5
RECOMMENDED = "Xenova/siglip-base-patch16-224"
RECOMMENDED_BYTES, RECOMMENDED_LICENCE = 815_000_000, "Apache-2.0"
"""The image-text model for profiles without one, Google's SigLIP in ONNX: its towers of 441 and
372 MB and 2.4 MB of words, as the hub rounds them."""


def show(context: typer.Context, profile: Profile = None, json: Json = False) -> None:
    """List the model files of a profile, with state, size and licence.

    Where it has no image-text model, one is recommended: with it, pictures are searched by what
    they show. Without it only words on them and 80 kinds of things are known.

    \b
    Examples:
      homer models
      homer models pull
      homer models --profile openai
    """
    if context.invoked_subcommand is None:
        rows = [*_rows(_names(profile, ())), *_hub_rows(_hub_models(profile, ()))]
        if load_profile(profile, Home.default().config).images is None:
            known = "images", "recommended", RECOMMENDED_BYTES, RECOMMENDED_LICENCE
            rows.append(_row(RECOMMENDED, *known))
        say_json(rows) if json else _table(rows)
        if not json:
            _recommend(profile)


def _recommend(profile: str | None) -> None:
    used = load_profile(profile, Home.default().config)
    if used.images is None:
        note(
            f'to search pictures by what they show, write images = "{RECOMMENDED}@REVISION" under '
            f"[profiles.{used.name}] in homer.toml (about {RECOMMENDED_BYTES / MEGABYTE:.0f} MB, "
            f"{RECOMMENDED_LICENCE}); then 'homer models pull', which names the newest revision "
            "where none is named, and 'homer reembed' for videos watched before"
        )


def pull(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="Names of models. Default: those of the profile."),
    ] = None,
    profile: Profile = None,
) -> None:
    """Download missing model files, and check them by SHA-256.

    \b
    Examples:
      homer models pull
      homer models pull yunet_sface
    """
    wanted = _names(profile, tuple(names or ()))
    hub_models = _hub_models(profile, tuple(names or ()))
    weights = Home.default().weights
    missing = [row["model"] for row in _rows(wanted) if row["state"] != "present"]
    _show_licences(tuple(missing))
    pulled_files = pull_weights(weights, wanted, _DownloadLines())
    fresh = [pulled for pulled in pulled_files if pulled.source]
    for pulled in fresh:
        say(f"{pulled.path.relative_to(weights)} from {pulled.source}")
    say(f"models: {len(pulled_files)} files in place, {len(fresh)} fetched")
    for model in hub_models:
        if model.state(weights) is not FileState.PRESENT:
            note(f"fetching {model.name} from the hub")
            record = model.fetch(weights)
            say(f"{model.name}: {len(record.digests)} files, licence: {record.licence}")
    if not names:
        _recommend(profile)


class _DownloadLines:
    """Prints a line at the start of a download, and at each quarter of a large one."""

    def __init__(self) -> None:
        self._last: tuple[str, str, int] = ("", "", -1)

    def __call__(self, progress: FetchProgress) -> None:
        large = progress.total >= LARGE
        quarter = 4 * progress.done // max(1, progress.total) if large else 0
        now = (progress.file, progress.source, quarter)
        if now != self._last:
            self._last = now
            size = f"{progress.total / MEGABYTE:.1f} MB"
            done = f", {25 * quarter} % done" if quarter else ""
            note(f"fetching {progress.file} ({size}{done}) from {progress.source}")


def _names(profile: str | None, names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        return load_profile(profile, Home.default().config).weights
    return tuple(name for name in names if not is_hub_name(name))


def _hub_models(profile: str | None, names: tuple[str, ...]) -> tuple[HubModel, ...]:
    """Return the profile's models of the hub, or those of them that are named.

    Raises:
        NotFound: one is named that the profile does not use: what it is for is not known.
    """
    used = load_profile(profile, Home.default().config)
    models = {model.name: model for model in used.hub_models}
    for name in filter(is_hub_name, names):
        if name not in models:
            raise NotFound(
                f"the profile {used.name} does not use the model {name}: set `speech`, `text` or "
                "`images` in the profile to it"
            )
    return tuple(model for model in used.hub_models if not names or model.name in names)


def _row(model: str, need: str, state: str, size: int, licence: str, **more: Any) -> dict[str, Any]:
    upstream = f"https://huggingface.co/{model.replace('@', '/tree/')}"
    row = {"model": model, "need": need, "state": state, "bytes": size, "licence": licence}
    return {**row, "languages": (), "restricted": False, "upstream": upstream, **more}


def _hub_rows(models: tuple[HubModel, ...]) -> list[dict[str, Any]]:
    weights = Home.default().weights
    return [
        _row(m.name, m.need, str(m.state(weights)), m.size(weights), m.licence(weights))
        for m in models
    ]


def _rows(names: tuple[str, ...]) -> list[dict[str, Any]]:
    found = status(Home.default().weights, names)
    return [
        _row(
            name,
            weights_named(name).need,
            _state([file for file in found if file.model == name]),
            weights_named(name).size,
            weights_named(name).licence,
            languages=weights_named(name).languages,
            restricted=weights_named(name).restricted,
            upstream=weights_named(name).upstream,
        )
        for name in names
    ]


def _state(files: list[FileStatus]) -> str:
    states = {str(file.state) for file in files}
    return next((state for state in ("wrong", "missing") if state in states), "present")


def _table(rows: list[dict[str, Any]]) -> None:
    heads = ("model", "for", "state", "MB", "languages", "licence")
    say_table(
        heads,
        (
            (
                r["model"],
                r["need"],
                r["state"],
                f"{r['bytes'] / MEGABYTE:.0f}",
                _languages(r),
                r["licence"],
            )
            for r in rows
        ),
    )
    if any(row["state"] in ("missing", "wrong") for row in rows):
        note("homer models pull fetches what is missing")


def _languages(row: dict[str, Any]) -> str:
    """List few languages by their codes, many by their number."""
    known = row["languages"]
    return f"{len(known)} languages" if len(known) > FEW else ", ".join(known)


def _show_licences(names: tuple[str, ...]) -> None:
    """Print licences that restrict the use of a model, before it is fetched."""
    for weights in map(weights_named, names):
        if weights.restricted:
            note(f"{weights.name} ({weights.need}): {weights.licence}")


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(rich_markup_mode=None)
    group.callback(invoke_without_command=True)(show)
    group.command("pull")(pull)
    app.add_typer(group, name="models", help=show.__doc__)
