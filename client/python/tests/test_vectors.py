import json

import pytest
from make_vectors import VECTORS, vectors

SHARED = json.loads(VECTORS.read_text())


@pytest.mark.parametrize("section", SHARED)
def test_what_is_sent_is_what_every_client_sends(section):
    shared = SHARED[section]
    assert len(shared) > 0
    assert json.loads(json.dumps(vectors()[section])) == shared
