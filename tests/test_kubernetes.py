"""The file for Kubernetes, as far as it can be checked without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from deskhand.cli.root import cli
from deskhand.config import keys
from deskhand.config.config import Config
from deskhand.supervision.supervise import DRAIN_S

ROOT = Path(__file__).parent.parent
PARTS: list[dict[str, Any]] = list(yaml.safe_load_all((ROOT / "kubernetes.yaml").read_text()))
CLAIM, SERVICE, SERVER, WORKER = PARTS
VERSIONS = ("1.31", "1.37")


def pod_of(part: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = part["spec"]["template"]["spec"]
    return pod


def container_of(part: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod_of(part)["containers"]
    return dict(container)


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_each_field(version: str) -> None:
    for part in PARTS:
        kubernetes_validate.validate(part, version, strict=True)


def test_a_field_that_is_none_is_found() -> None:
    broken = SERVICE | {"spec": SERVICE["spec"] | {"selectors": {}}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def test_parts_find_each_other() -> None:
    for part in (SERVER, WORKER):
        labels = part["spec"]["template"]["metadata"]["labels"]
        assert part["spec"]["selector"]["matchLabels"] == labels
        (volume,) = pod_of(part)["volumes"]
        assert volume["persistentVolumeClaim"]["claimName"] == CLAIM["metadata"]["name"]
        (mount,) = container_of(part)["volumeMounts"]
        assert mount["name"] == volume["name"]
    assert SERVICE["spec"]["selector"] == SERVER["spec"]["template"]["metadata"]["labels"]
    assert SERVER["spec"]["serviceName"] == SERVICE["metadata"]["name"]
    assert CLAIM["spec"]["accessModes"] == ["ReadWriteMany"], "the workers are on other machines"


def test_a_worker_is_like_the_server() -> None:
    """It has the same home, secrets and limits."""
    assert (
        pod_of(SERVER).items()
        >= {key: value for key, value in pod_of(WORKER).items() if key != "containers"}.items()
    )
    server, worker = container_of(SERVER), container_of(WORKER)
    for key in ("image", "envFrom", "resources", "securityContext", "volumeMounts"):
        assert worker[key] == server[key], key
    home = {"name": "DESKHAND_HOME", "value": "/data/home"}
    assert home in server["env"] and home in worker["env"]


def test_nobody_is_root_and_there_is_time_to_end() -> None:
    for part in (SERVER, WORKER):
        pod = pod_of(part)
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        assert f"--uid {pod['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text()
        assert container_of(part)["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert pod["terminationGracePeriodSeconds"] >= DRAIN_S + 5


def test_commands_and_settings_are_ours() -> None:
    program, *words = container_of(SERVER)["readinessProbe"]["exec"]["command"]
    assert program == "deskhand"
    assert CliRunner().invoke(cli, [*words, "--help"]).exit_code == 0
    assert CliRunner().invoke(cli, [*container_of(WORKER)["args"], "--help"]).exit_code == 0
    for each in container_of(SERVER)["env"]:
        name = each["name"].removeprefix("DESKHAND_").lower().replace("__", ".")
        assert each["name"] == "DESKHAND_HOME" or keys.exists(name, Config), name
