import pytest

from hlorank import ModelReference


@pytest.mark.parametrize("text", ["tile-iree-cpu", "layout-xla-cpu@3", "a@stable", "b@canary"])
def test_a_reference_is_printed_as_it_is_read(text):
    assert str(ModelReference.parse(text)) == text


@pytest.mark.parametrize("text", ["", "@1", "@stable", "name@", "name@x", "name@0", "name@-1"])
def test_what_names_no_version_is_refused(text):
    with pytest.raises(ValueError, match="a model is given as NAME"):
        ModelReference.parse(text)


def test_a_server_tells_its_models(ranker):
    name = "layout-xla-cpu"
    models = ranker.list_models()
    serving = next(model for model in models if model.name == name and model.serving)
    assert ranker.get_model(name) == ranker.get_model(name, serving.version) == serving
    assert (serving.task, serving.state, serving.kind) == ("layout", "serving", "segment")
    assert serving.default_for_task and serving.rejection is None
    assert len(serving.digest) == 32 and serving.measured_quality
    assert serving.state_since.utcoffset().total_seconds() == 0
