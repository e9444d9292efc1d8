import json

import pytest
from make_vectors import VECTORS, vectors


@pytest.mark.parametrize(
    "section", ["modules", "files", "layouts", "tiles", "tile_features", "fusions"]
)
def test_what_is_sent_is_what_every_client_sends(section):
    shared = json.loads(VECTORS.read_text())[section]
    assert len(shared) > 0
    assert json.loads(json.dumps(vectors()[section])) == shared
