"""The manifests of deploy/kubernetes are valid and agree with the server and its image."""

import os
import shutil
import subprocess

import pytest
import yaml
from manifests import by_kind, container, environment, read, validate
from sources import (
    DEPLOY,
    IMAGE,
    NO_TELEMETRY,
    REPOSITORY,
    arguments,
    foreign_variables,
    image_environment,
    port,
    server_settings,
)

FOLDER = DEPLOY / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
DOCUMENTS = read(FOLDER / "hlorank.yaml")
OBJECTS = by_kind(DOCUMENTS)
DEPLOYMENT = OBJECTS["Deployment/hlorank"]
POD = DEPLOYMENT["spec"]["template"]["spec"]
SERVER = container(DEPLOYMENT)
ENVIRONMENT = environment(DEPLOYMENT)
PORTS = {port["name"]: port["containerPort"] for port in SERVER["ports"]}
LABELS = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]


def selects(selector: dict) -> bool:
    """Returns whether labels select the pods of the deployment."""
    return bool(selector) and selector.items() <= LABELS.items()


def test_the_manifests_are_valid():
    assert KUSTOMIZATION["resources"] == ["hlorank.yaml"]
    validate(DOCUMENTS)
    misspelled = {**DEPLOYMENT, "spec": {**DEPLOYMENT["spec"], "replica": 2}}
    with pytest.raises(Exception, match="replica"):
        validate([misspelled])


def test_the_job_of_workers_is_valid():
    documents = read(FOLDER / "worker.yaml")
    validate(documents)
    [job] = documents
    worker = container(job)
    assert worker["command"][:2] == ["hlorank", "worker"]
    ports = OBJECTS["Service/hlorank"]["spec"]["ports"]
    endpoints = [f"http://hlorank:{each['port']}" for each in ports]
    assert environment(job)["HLORANK_ENDPOINT"] in endpoints


def test_kubectl_makes_the_same_of_them():
    kubectl = shutil.which("kubectl")
    if not kubectl:
        pytest.skip("kubectl is missing")
    command = [kubectl, "kustomize", str(FOLDER)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert by_kind(list(yaml.safe_load_all(printed))) == OBJECTS


def test_the_image_is_that_of_this_version():
    assert SERVER["image"] == IMAGE
    assert [f"{i['newName']}:{i['newTag']}" for i in KUSTOMIZATION["images"]] == [IMAGE]
    assert LABELS["app.kubernetes.io/version"] == IMAGE.partition(":")[2]


def test_variables_are_settings_of_the_server():
    # The names of the services contain the namespace, which Kubernetes fills in.
    assert foreign_variables(ENVIRONMENT) == NO_TELEMETRY | {"NAMESPACE": None}
    image = image_environment()
    for name in set(ENVIRONMENT) & set(image):
        assert ENVIRONMENT[name] == image[name], name


def test_ports_and_probes_are_where_the_server_listens():
    assert PORTS["grpc"] == port(ENVIRONMENT["HLORANK_LISTEN"])
    assert PORTS["metrics"] == port(ENVIRONMENT["HLORANK_METRICS_LISTEN"])
    health = (REPOSITORY / "server/src/health.rs").read_text()
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        grpc = SERVER[probe]["grpc"]
        assert grpc["port"] == PORTS["grpc"]
        assert f'"{grpc.get("service", "")}"' in health


def test_services_lead_to_the_ports_of_the_pods():
    for name in ("hlorank", "hlorank-replicas"):
        service = OBJECTS[f"Service/{name}"]["spec"]
        assert selects(service["selector"])
        for entry in service["ports"]:
            assert entry["port"] == PORTS[entry["targetPort"]]
    assert OBJECTS["Service/hlorank-replicas"]["spec"]["clusterIP"] == "None"


def test_a_pod_has_time_for_its_pause_and_its_drain():
    pause = SERVER["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain = (server_settings() | ENVIRONMENT)["HLORANK_DRAIN_SECONDS"]
    assert POD["terminationGracePeriodSeconds"] > pause + float(drain)
    readiness = SERVER["readinessProbe"]
    assert pause >= readiness["periodSeconds"] * readiness["failureThreshold"]


def test_the_pod_is_restricted():
    assert POD["automountServiceAccountToken"] is False
    # Variables of services named hlorank would have the prefix of the server's.
    assert POD["enableServiceLinks"] is False
    user, group = arguments("USER")[0].split(":")
    assert POD["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": int(user),
        "runAsGroup": int(group),
        "fsGroup": int(group),
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert SERVER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_caches_fit_the_memory():
    caches = ("HLORANK_GRAPH_CACHE_BYTES", "HLORANK_EMBEDDING_CACHE_BYTES")
    cached = sum(int(ENVIRONMENT[name]) for name in caches)
    gigabytes = SERVER["resources"]["limits"]["memory"].removesuffix("Gi")
    assert cached + (300 << 20) <= int(gigabytes) << 30


def test_there_is_a_compute_thread_for_every_requested_cpu():
    [workers] = [v for v in SERVER["env"] if v["name"] == "HLORANK_WORKERS"]
    assert workers["valueFrom"] == {"resourceFieldRef": {"resource": "requests.cpu"}}
    assert "cpu" in SERVER["resources"]["requests"]


def test_the_autoscaler_asks_for_a_metric_that_the_server_and_the_adapter_have():
    autoscaler = OBJECTS["HorizontalPodAutoscaler/hlorank"]["spec"]
    target = autoscaler["scaleTargetRef"]
    assert f"{target['kind']}/{target['name']}" in OBJECTS
    assert "replicas" not in DEPLOYMENT["spec"], "the autoscaler alone decides how many"
    [pods] = [m["pods"] for m in autoscaler["metrics"] if m["type"] == "Pods"]
    metric = pods["metric"]["name"]
    assert f"| `{metric}` | gauge |" in (DEPLOY / "METRICS.md").read_text()
    [rule] = yaml.safe_load((DEPLOY / "prometheus/adapter.yml").read_text())["rules"]
    assert rule["name"]["as"] == metric
    assert rule["seriesQuery"].startswith(f"{metric}{{")


def test_a_drained_node_leaves_replicas():
    budget = OBJECTS["PodDisruptionBudget/hlorank"]["spec"]
    least = OBJECTS["HorizontalPodAutoscaler/hlorank"]["spec"]["minReplicas"]
    assert selects(budget["selector"]["matchLabels"])
    assert 0 < budget["maxUnavailable"] < least


def test_nobody_calls_but_whom_the_policy_names_and_the_server_calls_nobody():
    policy = OBJECTS["NetworkPolicy/hlorank"]["spec"]
    assert selects(policy["podSelector"]["matchLabels"])
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["egress"] == []
    opened = [entry["port"] for rule in policy["ingress"] for entry in rule["ports"]]
    assert sorted(opened) == sorted(PORTS)
    assert all(rule["from"] for rule in policy["ingress"])


def test_prometheus_finds_the_pods(tmp_path):
    configuration = yaml.safe_load((DEPLOY / "prometheus/kubernetes.yml").read_text())
    [job] = configuration["scrape_configs"]
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    [kept] = [rule for rule in job["relabel_configs"] if rule.get("action") == "keep"]
    assert kept["regex"] == f"{LABELS['app.kubernetes.io/name']};metrics"
    folder = os.environ.get("HLORANK_PROMETHEUS", str(REPOSITORY / "target/prometheus"))
    promtool = shutil.which("promtool", path=folder)
    if not promtool:
        pytest.skip("the rest needs promtool: make setup-prometheus")
    # Debian's promtool does not support Kubernetes service discovery.
    rest = tmp_path / "prometheus.yml"
    rest.write_text(yaml.safe_dump(configuration))
    subprocess.run([promtool, "check", "config", "--syntax-only", rest], check=True)
