"""Files are written whole or not at all, and only regular ones of a bearable size are read."""

import errno
import os
import stat
import time
from pathlib import Path

import pytest

from degem import files
from degem.errors import DegemError
from degem.files import ABANDONED, STAGING, opened, read_regular, replaced, sweep


def write(path: Path, content: bytes = b"new", **choices: bool) -> None:
    with replaced(path, **choices) as file:
        file.write(content)


def test_a_failure_leaves_the_old_file_and_no_staging(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")

    def interrupted() -> None:
        with replaced(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_mode_is_kept_and_a_new_file_has_the_usual_one(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write(tmp_path / "a")
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "a").chmod(0o600)
    write(tmp_path / "a", b"newer")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_a_link_is_replaced_or_followed_as_asked(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (tmp_path / "a").symlink_to("target")
    write(tmp_path / "a", follow_link=True)
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "target").read_text() == "new"
    write(tmp_path / "a", b"newer")
    assert not (tmp_path / "a").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_what_is_no_file_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(DegemError, match=f"{name} cannot be written: what is there is not a regular file"):
            write(tmp_path / name)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_names_the_file_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DegemError, match="a cannot be written: the disk is full: make space"):
        write(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_may_not_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DegemError, match="cannot be written"):
        write(tmp_path / "file" / "a")


def left_over(folder: Path, name: str, age: float) -> Path:
    staging = folder / f"{STAGING}{name}"
    staging.mkdir()
    (staging / "file").write_text("half")
    os.utime(staging, (time.time() - age, time.time() - age))
    return staging


def test_what_killed_writers_left_goes_at_the_next_write_a_day_later(tmp_path: Path) -> None:
    old, young = left_over(tmp_path, "old", ABANDONED + 1), left_over(tmp_path, "young", 60)
    write(tmp_path / "a")
    assert not old.exists()
    assert young.exists()
    sweep(tmp_path, abandoned=0)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_only_regular_files_are_read_and_none_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "device", tmp_path):
        with pytest.raises(OSError, match=r"not a regular file|directory"):
            opened(path)


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 40)  # takes no disk
    with pytest.raises(OSError, match="more than 1,000"):
        read_regular(tmp_path / "a", 1000)


def test_the_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEGEM_MAX_READ_MIB", "3")
    assert files.memory_limit() == 3 << 20
    monkeypatch.setenv("DEGEM_MAX_READ_MIB", "much")
    assert files.memory_limit() > 3 << 20
