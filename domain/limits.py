"""Size limits on files that come from outside."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from domain.base import Frozen

MB = 1 << 20
GB = 1 << 30


class ImportLimits(Frozen):
    """Limits on exports, back-ups, files of ``--keep-undo`` and captions.

    A file that exceeds one of them is rejected as a whole, before it fills memory or the disk.
    """

    line_mb: PositiveInt = Field(default=16, le=1_000, description="a row of a table")
    blob_mb: PositiveInt = Field(default=64, le=4_000, description="an image")
    image_mp: PositiveInt = Field(default=34, le=200, description="megapixels of an image")
    total_gb: PositiveInt = Field(default=500, description="a whole file, unpacked")
    ratio: PositiveInt = Field(default=200, description="how many times smaller it may be packed")
    rows: PositiveInt = Field(
        default=10_000_000, description="of an export or a file of --keep-undo"
    )
    captions_mb: PositiveInt = Field(default=128, le=4_000, description="captions, unpacked")


DEFAULT_LIMITS = ImportLimits()
"""The limits unless configured otherwise."""
