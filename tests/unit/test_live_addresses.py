"""What a live source is called: by nothing that lets anybody in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InputError, MediaError
from perception.live import live_source
from perception.source import find_media

WORD = st.text("abcdefghijklmnopqrstuvwxyzXYZ0123456789", min_size=4, max_size=12)


@given(user=WORD, secret=WORD, host=WORD, key=WORD)
def test_neither_password_nor_key_is_reported(user: str, secret: str, host: str, key: str) -> None:
    text = (
        f"rtsp://{user}U1:{secret}S2@{host}.local:554/cam/1?channel=2&{key}={secret}S2#{secret}S2"
    )
    source = live_source(text)
    output = f"{source!r} {source.name} {source.label} {source.id}"
    assert f"{secret}S2" not in output
    assert f"{user}U1" not in output
    assert source.address == text
    assert source.name.startswith(f"rtsp://{host.lower()}.local:554/cam/1?channel=2&")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("rtsp://u:p@door/live", "rtsp://door/live"),
        ("https://h:8443/x.m3u8?token=abcdef", "https://h:8443/x.m3u8?token=..."),
        ("rtsp://h/c?channel=1&subtype=0", "rtsp://h/c?channel=1&subtype=0"),
        ("rtsp://h/c?pin=123&channel=7", "rtsp://h/c?pin=...&channel=7"),
        ("rtsp://u:p@[fe80::1]:554/c", "rtsp://[fe80::1]:554/c"),
        ("http://u%40x:p%3Aq@h/c", "http://h/c"),
        ("rtsp://u:p@q@h/c", "rtsp://h/c"),
    ],
)
def test_names_of_addresses(address: str, name: str) -> None:
    assert live_source(address).name == name


def test_a_new_password_is_the_same_camera_and_another_channel_is_not() -> None:
    first = live_source("rtsp://u:old@h/c?channel=1").id
    assert live_source("rtsp://u:new@h/c?channel=1").id == first
    assert live_source("rtsp://u:new@h/c?channel=2").id != first
    assert live_source("rtsp://u:new@h/c?channel=1", "door").id != first


@pytest.mark.parametrize(
    "address",
    [
        "ftp://u:hunter2@h/x",
        "file:///etc/passwd?hunter2",
        "concat://hunter2",
        "rtsp://",
        "rtsp://u:hunter2@[broken/x",
        "rtsp://u:hunter2@h:99999999/x",
        "subfile,,start,0,end,9,,://hunter2",
    ],
)
def test_other_addresses_are_refused_in_a_line_that_does_not_repeat_them(address: str) -> None:
    with pytest.raises(InputError, match="rtsp://, http:// or https://") as refused:
        live_source(address)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("secret", ["12/hunter2", "12?hunter2", "12#hunter2"])
def test_a_password_that_looks_like_a_path_is_refused_and_not_told(secret: str) -> None:
    with pytest.raises(InputError, match="%2F") as refused:
        live_source(f"rtsp://u:{secret}@h/c")
    assert "hunter2" not in str(refused.value)


def test_pipes_cameras_and_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    assert live_source(str(tmp_path / "p")).kind == "pipe"
    assert live_source("/dev/null").kind == "camera"
    assert live_source("-", "talk").kind == "pipe"
    with pytest.raises(InputError, match="--title"):
        live_source("-")
    with pytest.raises(InputError, match="no such device or pipe"):
        live_source(str(tmp_path / "none"))
    (tmp_path / "talk.mp4").write_bytes(b"x")
    with pytest.raises(InputError, match="homer ingest"):
        live_source(str(tmp_path / "talk.mp4"))


def test_an_address_that_is_given_as_a_file_is_not_repeated() -> None:
    with pytest.raises(MediaError, match="homer watch") as refused:
        find_media([Path("rtsp://me:hunter2@door/live")])
    assert "hunter2" not in str(refused.value)
