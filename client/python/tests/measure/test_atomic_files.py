import os

import pytest

from hlorank.measure.atomic_files import read_json, write_atomically, write_json


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
