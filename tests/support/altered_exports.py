"""Exports and back-ups that somebody altered, whole by their own checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

Members = dict[str, bytes]


def runs(command: str) -> bytes:
    """A value that LangGraph's own serializer runs a command for, as it reads it."""
    body = b"\x93\xa2os\xa6system\xd9" + bytes([len(command)]) + command.encode()
    return b"\xc7" + bytes([len(body)]) + b"\0" + body


def members_of(path: Path) -> Members:
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(out: Path, members: Mapping[str, bytes]) -> Path:
    with ZipFile(out, "w", ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out


def export_with(path: Path, out: Path, change: Callable[[list[Any]], object]) -> Path:
    """An export with other rows; they are lists of a table's name and its columns' values."""
    members = members_of(path)
    head, *lines = members["rows.jsonl"].split(b"\n")
    rows = [json.loads(line) for line in lines]
    change(rows)
    output = [head, *(json.dumps(row).encode() for row in rows)]
    return written(out, members | {"rows.jsonl": b"\n".join(output)})


def backup_with(path: Path, out: Path, change: Callable[[dict[str, Any], Members], object]) -> Path:
    """A back-up with another manifest or other parts, whose checksums are made anew."""
    members = members_of(path)
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest, members)
    for part in (*(table["part"] for table in manifest["tables"]), manifest["images"]):
        data = members[part["name"]]
        part |= {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return written(out, {**members, "manifest.json": json.dumps(manifest).encode()})


def table_of(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in manifest["tables"] if one["table"] == name)


def set_column(
    manifest: dict[str, Any], members: Members, table: str, column: str, value: str
) -> None:
    """Every row of a table of a back-up gets this value, as COPY writes it."""
    found = table_of(manifest, table)
    place, name = found["columns"].index(column), found["part"]["name"]
    rows = [row.split(b"\t") for row in members[name].splitlines()]
    for row in rows:
        row[place] = value.encode()
    members[name] = b"".join(b"\t".join(row) + b"\n" for row in rows)
