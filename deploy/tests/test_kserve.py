"""The runtime of KServe agrees with the deployment, whose container it has."""

from manifests import container, read, validate
from sources import DEPLOY, IMAGE, image_environment, port, server_settings

[RUNTIME] = read(DEPLOY / "kserve/serving-runtime.yaml")
[SERVER] = RUNTIME["spec"]["containers"]
[DEPLOYMENT] = read(DEPLOY / "kubernetes/deployment.yaml")


def test_the_container_is_one_of_a_pod():
    # Kubernetes' own schemas do not have that of the runtime itself.
    pod = {"metadata": {"name": "runtime"}, "spec": {"containers": [SERVER]}}
    validate([{"apiVersion": "v1", "kind": "Pod", **pod}])


def test_the_container_is_that_of_the_deployment():
    of_deployment = container(DEPLOYMENT)
    for field in ("resources", "securityContext"):
        assert SERVER[field] == of_deployment[field]
    assert SERVER["image"] == IMAGE
    variables = {variable["name"]: variable.get("value") for variable in SERVER["env"]}
    assert variables.keys() <= server_settings().keys()
    assert variables["HLORANK_MODELS"] == "/mnt/models", "where KServe mounts a model"
    [calls] = SERVER["ports"]
    assert calls["containerPort"] == port(image_environment()["HLORANK_LISTEN"])
    assert SERVER["readinessProbe"]["grpc"]["port"] == calls["containerPort"]
