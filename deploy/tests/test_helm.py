"""The chart renders deploy/kubernetes from its default values, and applies other values."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from manifests import KUBERNETES_VERSIONS, by_kind, container, environment, read, validate
from sources import DEPLOY, NO_TELEMETRY, foreign_variables, server_settings

CHART = DEPLOY / "helm/hlorank"
FETCH = "{name: fetch, image: 'fetch:1', volumeMounts: [{name: models, mountPath: /models}]}"
MANIFESTS = read(DEPLOY / "kubernetes/hlorank.yaml")
HELM = os.environ.get("HLORANK_HELM") or shutil.which("helm")
needs_helm = pytest.mark.skipif(not HELM, reason="helm is missing; HLORANK_HELM may name it")


def render(values: str, versions: list[str] = KUBERNETES_VERSIONS) -> dict[str, dict]:
    """Renders the chart, as release hlorank, with values in YAML, and validates the result."""
    command = [HELM, "template", "hlorank", CHART, "--values", "-"]
    printed = subprocess.run(command, input=values, capture_output=True, text=True, check=False)
    if printed.returncode != 0:
        raise ValueError(printed.stderr)
    documents = [document for document in yaml.safe_load_all(printed.stdout) if document]
    # Kubernetes' own schemas do not have those of extensions.
    own = [each for each in documents if not each["apiVersion"].startswith("keda.sh/")]
    validate(own, versions)
    return by_kind(documents)


def pod(objects: dict[str, dict]) -> dict:
    """Returns the pod specification of the deployment."""
    return objects["Deployment/hlorank"]["spec"]["template"]["spec"]


def test_values_are_settings_of_the_server():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values["settings"]) <= set(server_settings())


def test_every_manifest_has_a_template():
    templates = [file.read_text() for file in (CHART / "templates").glob("*.yaml")]
    kinds = sorted(re.findall(r"^kind: (\w+)$", "\n".join(templates), re.MULTILINE))
    # A ScaledObject takes the place of the autoscaler.
    assert kinds == sorted(["ScaledObject", *(document["kind"] for document in MANIFESTS)])


@needs_helm
def test_the_chart_makes_the_manifests():
    assert render("{}") == by_kind(MANIFESTS)


@needs_helm
def test_models_are_mounted_from_a_claim():
    objects = render("{models: {existingClaim: shared}, admin: {enabled: true}}")
    [volume] = pod(objects)["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "shared"}
    [mount] = container(objects["Deployment/hlorank"])["volumeMounts"]
    variables = environment(objects["Deployment/hlorank"])
    assert mount == {"name": volume["name"], "mountPath": variables["HLORANK_MODELS"]}
    assert variables["HLORANK_ADMIN_LISTEN"].startswith("127.0.0.1:")


@needs_helm
def test_models_are_filled_in_by_containers():
    filled = pod(render(f"models: {{initContainers: [{FETCH}]}}"))
    assert filled["volumes"] == [{"name": "models", "emptyDir": {}}]
    assert [container["name"] for container in filled["initContainers"]] == ["fetch"]


@needs_helm
def test_models_are_mounted_from_an_image():
    values = "models: {image: {reference: 'registry.example/models@sha256:12'}}"
    objects = render(values, KUBERNETES_VERSIONS[-1:])
    deployment = objects["Deployment/hlorank"]
    [volume] = pod(objects)["volumes"]
    image = {"reference": "registry.example/models@sha256:12", "pullPolicy": "IfNotPresent"}
    assert volume == {"name": "models", "image": image}
    [mount] = container(deployment)["volumeMounts"]
    assert mount["mountPath"] == environment(deployment)["HLORANK_MODELS"]


@needs_helm
def test_secrets_are_mounted_where_the_server_reads_them():
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
    assert foreign_variables(variables) == NO_TELEMETRY | {"NAMESPACE": None}
    probes = [server[name] for name in ("startupProbe", "readinessProbe", "livenessProbe")]
    assert all(probe["httpGet"]["port"] == "metrics" and "grpc" not in probe for probe in probes)


@needs_helm
def test_measurements_are_kept_in_a_database_whose_address_is_a_secret():
    deployment = render("measurements: {existingSecret: address}")["Deployment/hlorank"]
    [kept] = [v for v in container(deployment)["env"] if v["name"] == "HLORANK_MEASUREMENTS"]
    assert kept["valueFrom"] == {"secretKeyRef": {"name": "address", "key": "database"}}


@needs_helm
def test_measurements_are_kept_in_a_volume_of_one_server():
    one = "autoscaling: {enabled: false}, replicas: 1"
    objects = render(f"{{{one}, measurements: {{existingClaim: kept}}}}")
    deployment = objects["Deployment/hlorank"]
    [volume] = pod(objects)["volumes"]
    assert volume["persistentVolumeClaim"] == {"claimName": "kept"}
    [mount] = container(deployment)["volumeMounts"]
    assert mount["name"] == volume["name"]
    file = Path(environment(deployment)["HLORANK_MEASUREMENTS"])
    assert str(file.parent) == mount["mountPath"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}


@needs_helm
def test_grace_grows_with_the_drain():
    objects = render("{drainSeconds: 120, preStopSeconds: 20}")
    assert pod(objects)["terminationGracePeriodSeconds"] > 140
    assert environment(objects["Deployment/hlorank"])["HLORANK_DRAIN_SECONDS"] == "120"


@needs_helm
def test_parts_can_be_left_out():
    objects = render("{autoscaling: {enabled: false}, networkPolicy: {enabled: false}}")
    assert objects["Deployment/hlorank"]["spec"]["replicas"] == 2
    kinds = {kind.partition("/")[0] for kind in objects}
    assert kinds == {"Deployment", "Service", "PodDisruptionBudget"}


@needs_helm
def test_keda_scales_by_the_queue_in_place_of_the_autoscaler():
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
def test_what_is_chosen_comes_out():
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
@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (f"models: {{existingClaim: a, initContainers: [{FETCH}]}}", "exclude each other"),
        ("models: {existingClaim: a, image: {reference: b}}", "exclude each other"),
        (
            "{models: {image: {reference: a}}, admin: {enabled: true}}",
            "choices are stored in the model folder",
        ),
        ("tls: {clientCaSecret: clients}", r"needs tls\.existingSecret"),
        ("measurements: {existingSecret: a, existingClaim: b}", "exclude each other"),
        ("measurements: {existingClaim: kept}", "each server needs a file of its own"),
        ("settings: {HLORANK_WORKERS: 4}", "settings.HLORANK_WORKERS: put 4 into quotes"),
    ],
)
def test_values_that_do_not_fit_together_are_refused(values, reason):
    with pytest.raises(ValueError, match=reason):
        render(values)


@needs_helm
def test_no_peers_are_nobody():
    def ingress(values: str) -> list[dict]:
        return render(f"networkPolicy: {values}")["NetworkPolicy/hlorank"]["spec"]["ingress"]

    assert ingress("{clients: [], metrics: []}") == []
    (metrics,) = ingress("{clients: []}")
    assert metrics["from"] and metrics["ports"] == [{"port": "metrics"}]
