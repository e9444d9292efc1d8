"""Files that are not what their name says: the message names the file and the condition."""

import pytest
from library_words import assert_own_words

from hlorank import HlorankError
from hlorank.checks.files import decoded, file_content, parsed


def message_of(call) -> str:
    with pytest.raises(HlorankError) as refused:
        call()
    assert_own_words(str(refused.value))
    return str(refused.value)


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path):
    for path, words in (
        (tmp_path / "missing", "missing cannot be read: No such file or directory"),
        (tmp_path, "cannot be read: Is a directory"),
        (tmp_path / "\ud800", "cannot be read: no file has such a name"),
        (tmp_path / ("x" * 300), "cannot be read: File name too long"),
    ):
        assert words in message_of(lambda path=path: file_content(path))


def test_what_is_not_utf_8_is_named_with_its_line():
    assert decoded("\ufeffµ".encode(), "a.txt", HlorankError) == "µ"
    for content, line in ((b"\xff\xfea", 1), ("µ\n".encode() + "µ".encode("latin-1"), 2)):
        words = message_of(lambda content=content: decoded(content, "a.txt", HlorankError))
        assert words.startswith(f"a.txt is not text in UTF-8, line {line} ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a.json ends within a JSON document"),
        ('{"a": [1, 2', "a.json ends within a JSON document"),
        ('{"a": "b', "a.json ends within a JSON document"),
        ("{'a': 1}", "a.json is no JSON document at line 1, column 2"),
        ("{}\n{}", "a.json is no JSON document at line 2, column 1"),
        ("[" * 100_000, "a.json "),
        ("1" * 5_000, "a.json is no JSON document"),
    ],
)
def test_what_is_no_json_is_named_with_its_place(text, words):
    assert words in message_of(lambda: parsed(text, "a.json", HlorankError))
