"""The compose file bounds what each service takes, publishes on loopback only, and has no variable
that looks like a setting.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "topics"])
def test_each_service_has_a_limit_and_logs_that_end(name: str) -> None:
    service = SERVICES[name]
    assert service["mem_limit"]
    assert service["logging"]["options"]["max-size"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_monitoring_is_a_profile_with_the_rules_and_dashboards_of_deploy() -> None:
    assert {
        name for name, service in SERVICES.items() if service.get("profiles") == ["monitoring"]
    } == {"prometheus", "grafana"}
    mounted = [
        volume.split(":")[0]
        for name in ("prometheus", "grafana")
        for volume in SERVICES[name]["volumes"]
    ]
    folders = [(ROOT / "docker" / path).resolve() for path in mounted if path.startswith("..")]
    assert folders
    assert all(folder.is_dir() for folder in folders)
    scraped = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())[
        "scrape_configs"
    ][0]["static_configs"][0]["targets"]
    assert {target.split(":")[0] for target in scraped} <= SERVICES.keys()


def test_redis_wants_a_password_and_workers_have_it() -> None:
    password = "${PARETOBANDIT_REDIS_PASSWORD:-only-on-this-machine}"
    assert SERVICES["redis"]["environment"]["REDISCLI_AUTH"] == password
    assert password in SERVICES["worker-1"]["environment"]["PB_REDIS_URL"]
    assert "requirepass" in SERVICES["redis"]["command"][2]


def test_variables_of_the_file_are_no_settings_of_a_command() -> None:
    assert "${PB_" not in TEXT.replace("${PB_PARTITIONS", "")


@pytest.mark.parametrize("answer", [f"sha256:{'0a' * 32}", "toomanyrequests"])
def test_each_image_is_pinned_by_what_its_registry_says_or_none_is(
    tmp_path: Path, answer: str
) -> None:
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho {answer}\n")
    docker.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(
        [ROOT / "tools/digests"], env=path, capture_output=True, text=True, check=False
    )
    if "sha256" not in answer:
        assert ran.returncode == 1 and "no digest of python:3.11-slim" in ran.stderr
        return
    tagged = dict(re.findall(r"\$\{(PARETOBANDIT_[A-Z]+_IMAGE):-([^}]+)", TEXT))
    assert len(tagged) == 5
    assert f"ARG BASE={tagged['PARETOBANDIT_BASE_IMAGE']}\n" in DOCKERFILE
    pinned = dict(line.split("=", 1) for line in ran.stdout.splitlines())
    assert pinned == {name: f"{image}@{answer}" for name, image in tagged.items()}
