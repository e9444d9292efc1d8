"""Messages, and their vectors that all clients share."""

import json

import pytest
from make_vectors import VECTORS, vectors

from hlorank.wire import messages


def test_messages_and_enums_have_the_names_of_the_proto_files():
    assert messages.Graph(task=messages.Task.TASK_TILE).task == messages.Task.Value("TASK_TILE")
    with pytest.raises(AttributeError, match="no message or enum"):
        messages.Nothing  # noqa: B018


SHARED = json.loads(VECTORS.read_text())


@pytest.mark.parametrize("section", SHARED)
def test_what_is_sent_is_what_every_client_sends(section):
    shared = SHARED[section]
    assert len(shared) > 0
    assert json.loads(json.dumps(vectors()[section])) == shared
