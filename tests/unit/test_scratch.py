"""Where the databases of tests lie."""

from __future__ import annotations

from pathlib import Path

from tests.support.scratch import scratch


def test_it_is_in_memory_where_there_is_room_and_is_gone_afterwards(tmp_path: Path) -> None:
    with scratch(tmp_path, room=1) as folder:
        (folder / "a").write_text("a")
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_without_room_or_such_a_folder_it_is_on_disk(tmp_path: Path) -> None:
    for memory, room in ((tmp_path, 1 << 60), (tmp_path / "none", 1)):
        with scratch(memory, room) as folder:
            assert folder.is_dir()
            assert folder.parent != tmp_path


def test_what_a_killed_run_left_goes_and_what_another_uses_stays(tmp_path: Path) -> None:
    left, used = tmp_path / "homer-tests-999999999-a", tmp_path / "homer-tests-1-a"
    left.mkdir()
    used.mkdir()
    with scratch(tmp_path, room=1):
        assert not left.exists()
        assert used.exists()
