"""The model files of a profile on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from domain.base import Frozen
from domain.errors import NotFound
from library.params import OnCommandLine, Page, ProfileName
from models.hub import is_hub_name
from models.profile import Profile, load_profile
from models.weights import FetchProgress, FileState, status, weights_named
from models.weights import pull as pull_weights
from store.home import Home
from store.progress import SILENT, Meter

MEGABYTE = 1e6
LARGE = 50 * MEGABYTE
"""Bytes of a file from which on every quarter of it that is fetched is said."""
RECOMMENDED = "Xenova/siglip-base-patch16-224"
RECOMMENDED_BYTES, RECOMMENDED_LICENCE = 815_000_000, "Apache-2.0"
"""The image-text model for profiles without one, Google's SigLIP in ONNX: its towers of 441 and
372 MB and 2.4 MB of words, as the hub rounds them."""


class ModelOnDisk(Frozen):
    """A model of a profile: what it is for, and whether its files are there."""

    model: str
    need: str
    state: str = Field(description="present, missing, wrong or recommended")
    bytes: int
    licence: str
    languages: tuple[str, ...] = ()
    restricted: bool = Field(default=False, description="not free for every use")
    upstream: str


def models(home: Home, profile: ProfileName = None) -> Page[ModelOnDisk]:
    """List the model files of a profile, with state, size and licence.

    Where it has no image-text model, one is recommended: with it, pictures are searched by what
    they show. Without it only words on them and 80 kinds of things are known.

    Examples:
      homer models list
      homer models list --profile openai
    """
    used = load_profile(profile, home.config)
    found = [_of_manifest(home.weights, name) for name in used.weights]
    found += [
        ModelOnDisk(
            model=one.name,
            need=one.need,
            state=one.state(home.weights),
            bytes=one.size(home.weights),
            licence=one.licence(home.weights),
            upstream=_on_hub(one.name),
        )
        for one in used.hub_models
    ]
    lacking = any(one.state != FileState.PRESENT for one in found)
    notes = ["homer models pull fetches what is missing"] if lacking else []
    if used.images is None:
        known = ModelOnDisk(
            model=RECOMMENDED,
            need="images",
            state="recommended",
            bytes=RECOMMENDED_BYTES,
            licence=RECOMMENDED_LICENCE,
            upstream=_on_hub(RECOMMENDED),
        )
        found.append(known)
        notes.append(_recommendation(used))
    return Page(items=tuple(found), total=len(found), notes=tuple(notes))


def _of_manifest(weights: Path, name: str) -> ModelOnDisk:
    known, states = weights_named(name), {file.state for file in status(weights, [name])}
    return ModelOnDisk(
        model=name,
        need=known.need,
        state=next((s for s in (FileState.WRONG, FileState.MISSING) if s in states), "present"),
        bytes=known.size,
        licence=known.licence,
        languages=known.languages,
        restricted=known.restricted,
        upstream=known.upstream,
    )


def _on_hub(name: str) -> str:
    return f"https://huggingface.co/{name.replace('@', '/tree/')}"


def _recommendation(used: Profile) -> str:
    return (
        f'to search pictures by what they show, write images = "{RECOMMENDED}@REVISION" under '
        f"[profiles.{used.name}] in homer.toml (about {RECOMMENDED_BYTES / MEGABYTE:.0f} MB, "
        f"{RECOMMENDED_LICENCE}); then 'homer models pull', which names the newest revision "
        "where none is named, and 'homer reembed' for videos watched before"
    )


def pull_models(
    home: Home,
    names: Annotated[
        tuple[str, ...],
        Field(description="Names of models. Default: those of the profile."),
        OnCommandLine(metavar="NAME...", argument=True),
    ] = (),
    profile: ProfileName = None,
    progress: Meter = SILENT,
) -> str:
    """Download missing model files, and check them by SHA-256.

    Examples:
      homer models pull
      homer models pull yunet_sface

    Raises:
        NotFound: a model of the hub is named that the profile does not use: what it is for is not
            known. Or the manifest has none of that name.
        WeightsMissing: no source has a file; what was fetched before stays.
    """
    used, weights = load_profile(profile, home.config), home.weights
    of_hub = {model.name: model for model in used.hub_models}
    for name in filter(is_hub_name, names):
        if name not in of_hub:
            raise NotFound(
                f"the profile {used.name} does not use the model {name}: set `speech`, `text` or "
                "`images` in the profile to it"
            )
    wanted = tuple(name for name in names if not is_hub_name(name)) if names else used.weights
    for model in map(weights_named, wanted):
        # Before it is fetched.
        if model.restricted and _of_manifest(weights, model.name).state != FileState.PRESENT:
            progress.say(f"{model.name} ({model.need}): {model.licence}")
    said = ("", "", 0)

    def report(now: FetchProgress) -> None:
        """Say a line at the start of a download, and at each quarter of a large one."""
        nonlocal said
        quarter = 4 * now.done // max(1, now.total) if now.total >= LARGE else 0
        if (now.file, now.source, quarter) != said:
            said = (now.file, now.source, quarter)
            done = f", {25 * quarter} % done" if quarter else ""
            size = f"{now.total / MEGABYTE:.1f} MB"
            progress.say(f"fetching {now.file} ({size}{done}) from {now.source}")

    pulled = pull_weights(weights, wanted, report)
    fresh = [one for one in pulled if one.source]
    lines = [f"{one.path.relative_to(weights)} from {one.source}" for one in fresh]
    lines.append(f"models: {len(pulled)} files in place, {len(fresh)} fetched")
    for name, one in of_hub.items():
        if (not names or name in names) and one.state(weights) is not FileState.PRESENT:
            progress.say(f"fetching {name} from the hub")
            record = one.fetch(weights)
            lines.append(f"{name}: {len(record.digests)} files, licence: {record.licence}")
    if not names and used.images is None:
        progress.say(_recommendation(used))
    return "\n".join(lines)
