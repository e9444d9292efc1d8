"""The chart renders deploy/kubernetes from its default values, and applies other values."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from manifests import (
    CHART,
    KUBERNETES_VERSIONS,
    by_kind,
    container,
    environment,
    read,
    rendered,
    validate,
)
from sources import DEPLOY, IMAGE, NO_TELEMETRY, server_settings

Render = Callable[[str], dict[str, dict]]
MANIFESTS = read(DEPLOY / "kubernetes/hlorank.yaml")
HELM = os.environ.get("HLORANK_HELM") or shutil.which("helm")
needs_helm = pytest.mark.skipif(not HELM, reason="helm is missing; HLORANK_HELM may name it")


@pytest.fixture
def render(tmp_path: Path) -> Render:
    """Renders the chart with values, given as YAML, and validates the result."""

    def render(values: str) -> dict[str, dict]:
        file = tmp_path / "values.yaml"
        file.write_text(values)
        documents = rendered(HELM, file)
        # Kubernetes' own schemas do not have those of extensions.
        validate([each for each in documents if not each["apiVersion"].startswith("keda.sh/")])
        return by_kind(documents)

    return render


def pod(objects: dict[str, dict]) -> dict:
    """Returns the pod specification of the deployment."""
    return objects["Deployment/hlorank"]["spec"]["template"]["spec"]


def test_chart_and_server_have_one_version():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f"hlorank:{chart['appVersion']}" == IMAGE


def test_values_are_settings_of_the_server():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values["settings"]) <= set(server_settings())


def test_every_manifest_has_a_template():
    templates = [file.read_text() for file in (CHART / "templates").glob("*.yaml")]
    kinds = sorted(re.findall(r"^kind: (\w+)$", "\n".join(templates), re.MULTILINE))
    # A ScaledObject takes the place of the autoscaler.
    assert kinds == sorted(["ScaledObject", *(document["kind"] for document in MANIFESTS)])


@needs_helm
def test_the_chart_makes_the_manifests(render):
    assert render("{}") == by_kind(MANIFESTS)


@needs_helm
def test_models_are_mounted_from_a_claim(render):
    objects = render("{models: {existingClaim: shared}, admin: {enabled: true}}")
    [volume] = pod(objects)["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "shared"}
    [mount] = container(objects["Deployment/hlorank"])["volumeMounts"]
    variables = environment(objects["Deployment/hlorank"])
    assert mount == {"name": volume["name"], "mountPath": variables["HLORANK_MODELS"]}
    assert variables["HLORANK_ADMIN_LISTEN"].startswith("127.0.0.1:")


@needs_helm
def test_models_are_filled_in_by_containers(render):
    fetch = "{name: fetch, image: 'fetch:1', volumeMounts: [{name: models, mountPath: /models}]}"
    filled = pod(render(f"models: {{initContainers: [{fetch}]}}"))
    assert filled["volumes"] == [{"name": "models", "emptyDir": {}}]
    assert [container["name"] for container in filled["initContainers"]] == ["fetch"]
    with pytest.raises(ValueError, match="exclude each other"):
        render(f"models: {{existingClaim: shared, initContainers: [{fetch}]}}")


@needs_helm
def test_models_are_mounted_from_an_image(tmp_path):
    values = tmp_path / "values.yaml"
    values.write_text("models: {image: {reference: 'registry.example/models@sha256:12'}}")
    documents = rendered(HELM, values)
    validate(documents, KUBERNETES_VERSIONS[-1:])
    deployment = by_kind(documents)["Deployment/hlorank"]
    [volume] = deployment["spec"]["template"]["spec"]["volumes"]
    image = {"reference": "registry.example/models@sha256:12", "pullPolicy": "IfNotPresent"}
    assert volume == {"name": "models", "image": image}
    [mount] = container(deployment)["volumeMounts"]
    assert mount["mountPath"] == environment(deployment)["HLORANK_MODELS"]
    values.write_text("models: {existingClaim: shared, image: {reference: models}}")
    with pytest.raises(ValueError, match="exclude each other"):
        rendered(HELM, values)
    values.write_text("{models: {image: {reference: models}}, admin: {enabled: true}}")
    with pytest.raises(ValueError, match="choices are stored in the model folder"):
        rendered(HELM, values)


@needs_helm
def test_secrets_are_mounted_where_the_server_reads_them(render):
    tls = "tls: {existingSecret: pair, clientCaSecret: clients}"
    objects = render(f"{{{tls}, tokens: {{existingSecret: callers}}}}")
    server = container(objects["Deployment/hlorank"])
    secrets = {v["name"]: v["secret"]["secretName"] for v in pod(objects)["volumes"]}
    assert secrets == {"tls": "pair", "client-ca": "clients", "tokens": "callers"}
    mounts = {mount["mountPath"] for mount in server["volumeMounts"] if mount["readOnly"]}
    variables = environment(objects["Deployment/hlorank"])
    files = [value for value in variables.values() if value and value.startswith("/etc/hlorank/")]
    assert len(files) == 4
    assert {file.rpartition("/")[0] for file in files} == mounts
    assert set(variables) - {*NO_TELEMETRY, "NAMESPACE"} <= set(server_settings())
    probes = [server[name] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert all(probe["httpGet"]["port"] == "metrics" and "grpc" not in probe for probe in probes)
    with pytest.raises(ValueError, match=r"needs tls\.existingSecret"):
        render("tls: {clientCaSecret: clients}")


@needs_helm
def test_measurements_are_kept_in_a_database_whose_address_is_a_secret(render):
    deployment = render("measurements: {existingSecret: address}")["Deployment/hlorank"]
    [kept] = [v for v in container(deployment)["env"] if v["name"] == "HLORANK_MEASUREMENTS"]
    assert kept["valueFrom"] == {"secretKeyRef": {"name": "address", "key": "database"}}
    with pytest.raises(ValueError, match="exclude each other"):
        render("measurements: {existingSecret: address, existingClaim: kept}")


@needs_helm
def test_measurements_are_kept_in_a_volume_of_one_server(render):
    one = "autoscaling: {enabled: false}\nreplicas: 1\n"
    objects = render(one + "measurements: {existingClaim: kept}")
    deployment = objects["Deployment/hlorank"]
    [volume] = pod(objects)["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "kept"}
    [mount] = container(deployment)["volumeMounts"]
    assert mount["name"] == volume["name"]
    file = Path(environment(deployment)["HLORANK_MEASUREMENTS"])
    assert str(file.parent) == mount["mountPath"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    with pytest.raises(ValueError, match="each server needs a file of its own"):
        render("measurements: {existingClaim: kept}")


@needs_helm
def test_grace_grows_with_the_drain(render):
    objects = render("{drainSeconds: 120, preStopSeconds: 20}")
    assert pod(objects)["terminationGracePeriodSeconds"] > 140
    assert environment(objects["Deployment/hlorank"])["HLORANK_DRAIN_SECONDS"] == "120"


@needs_helm
def test_parts_can_be_left_out(render):
    objects = render("{autoscaling: {enabled: false}, networkPolicy: {enabled: false}}")
    assert objects["Deployment/hlorank"]["spec"]["replicas"] == 2
    kinds = {kind.partition("/")[0] for kind in objects}
    assert kinds == {"Deployment", "Service", "PodDisruptionBudget"}


@needs_helm
def test_keda_scales_by_the_queue_in_place_of_the_autoscaler(render):
    url = "http://prometheus.monitoring:9090"
    objects = render(f"autoscaling: {{prometheus: '{url}', maxReplicas: 5, queueSeconds: 0.5}}")
    scaled = objects.pop("ScaledObject/hlorank")["spec"]
    assert objects.keys() == render("{}").keys() - {"HorizontalPodAutoscaler/hlorank"}
    assert scaled["scaleTargetRef"] == {"name": "hlorank"}
    assert (scaled["minReplicaCount"], scaled["maxReplicaCount"]) == (2, 5)
    autoscaler = render("{}")["HorizontalPodAutoscaler/hlorank"]["spec"]
    behavior = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior == autoscaler["behavior"]
    [trigger] = scaled["triggers"]
    assert trigger["metadata"]["serverAddress"] == url
    assert trigger["metadata"]["threshold"] == "0.5"
    assert "`hlorank_stage_duration_seconds`" in (DEPLOY / "METRICS.md").read_text()
    assert trigger["metadata"]["query"].startswith(
        'sum(rate(hlorank_stage_duration_seconds_sum{stage="queue",namespace="default",'
    )


@needs_helm
def test_what_is_chosen_comes_out(render):
    chosen = "image: {repository: registry.example/hlorank, tag: '1.2'}\n"
    chosen += "imagePullSecrets: [{name: pull}]\nnodeSelector: {disk: fast}\n"
    chosen += "tolerations: [{key: dedicated, operator: Exists}]\npodAnnotations: {a: b}\n"
    objects = render(chosen + "settings: {HLORANK_LOG: debug}\n")
    made = pod(objects)
    assert container(objects["Deployment/hlorank"])["image"] == "registry.example/hlorank:1.2"
    assert made["imagePullSecrets"] == [{"name": "pull"}]
    assert made["nodeSelector"] == {"disk": "fast"}
    assert made["tolerations"] == [{"key": "dedicated", "operator": "Exists"}]
    assert environment(objects["Deployment/hlorank"])["HLORANK_LOG"] == "debug"


@needs_helm
def test_a_setting_without_quotes_is_refused(render):
    with pytest.raises(ValueError, match=r"settings.HLORANK_WORKERS: put 4 into quotes"):
        render("settings: {HLORANK_WORKERS: 4}")


@needs_helm
def test_no_peers_are_nobody(render):
    def ingress(values: str) -> list[dict]:
        return render(f"networkPolicy: {values}")["NetworkPolicy/hlorank"]["spec"]["ingress"]

    assert ingress("{clients: [], metrics: []}") == []
    (metrics,) = ingress("{clients: []}")
    assert metrics["from"] and metrics["ports"] == [{"port": "metrics"}]
