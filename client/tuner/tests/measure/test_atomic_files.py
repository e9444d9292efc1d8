import os

import pytest

from hlorank_tune.measure.atomic_files import read_json, write_atomically, write_json


def test_no_partial_file_is_left_behind(tmp_path):
    write_atomically(tmp_path / "deep" / "file.pb", b"content")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file.pb"]
    assert (tmp_path / "deep" / "file.pb").read_bytes() == b"content"


def test_a_stop_before_the_end_leaves_the_old_file(tmp_path, monkeypatch):
    write_json(tmp_path / "file.json", {"a": 1})

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_json(tmp_path / "file.json", {"a": 2})
    assert read_json(tmp_path / "file.json") == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    file, link = tmp_path / "files" / "file", tmp_path / "link"
    write_atomically(file, b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640
    file.unlink()
    with pytest.raises(FileNotFoundError):
        write_atomically(link, b"new")


def test_a_name_that_was_known_before_is_not_used(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "file.partial").symlink_to(victim)
    write_atomically(tmp_path / "file", b"content")
    assert victim.read_bytes() == b"precious"


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"content")
    assert os.read(reading, 100) == b"content"
    os.close(reading)
    assert pipe.is_fifo()
