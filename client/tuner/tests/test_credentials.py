"""Files of certificates and keys."""

import pytest

from hlorank import HlorankError
from hlorank_tune.credentials import channel_credentials

SERVER = "https://localhost:7070"


def test_files_are_for_addresses_with_tls(tmp_path):
    file = tmp_path / "own"
    file.touch()
    given = [(None, None), (file, None), (None, (file, file)), (file, (file, file))]
    for authority, pair in given:
        assert channel_credentials(SERVER, authority, pair) is not None
    assert channel_credentials("localhost:7070", None, None) is None
    for authority, pair in given[1:]:
        with pytest.raises(HlorankError, match="does not use TLS; use an address at https://"):
            channel_credentials("localhost:7070", authority, pair)


@pytest.mark.parametrize(("name", "words"), [("missing", "No such file"), ("", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, words):
    path = tmp_path / name
    for authority, pair in ((path, None), (None, (path, path))):
        with pytest.raises(HlorankError, match=f"{path} cannot be read: {words}"):
            channel_credentials(SERVER, authority, pair)
