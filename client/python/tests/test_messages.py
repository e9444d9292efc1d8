import pytest

from hlorank.wire import messages


def test_messages_and_enums_have_the_names_of_the_proto_files():
    assert messages.Graph(task=messages.Task.TASK_TILE).task == messages.Task.Value("TASK_TILE")
    with pytest.raises(AttributeError, match="no message or enum"):
        messages.Nothing  # noqa: B018
