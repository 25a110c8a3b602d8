"""The files in deploy/ say what Weft really has: commands, options, paths, settings, and the time that a stop takes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tests.deploy.files import (
    DEPLOY,
    ROOT,
    commented_commands,
    documents,
    healthcheck,
    instructions,
    manifest,
    seconds,
    served,
    unit,
)
from weft.cli.commands import command_line
from weft.cli.serve import DRAIN_SECONDS
from weft.runtime.settings import Settings
from weft.server.route_table import ROUTES
from weft.settings import VARIABLES

STOP_SECONDS = DRAIN_SECONDS + 3 * Settings().drain_seconds
"""The longest that `weft serve` takes to stop: requests, then steps, decisions and output."""
NAMES = {setting.name for setting in VARIABLES}
PATHS = {route.path for route in ROUTES}
PORT = 8420


def parsed(words: list[str]) -> Any:
    """What the real parser makes of a command line."""
    context = command_line().make_context("weft", list(words), resilient_parsing=False)
    with context:
        name, command, rest = context.command.resolve_command(context, [*context._protected_args, *context.args])
        with command.make_context(name, list(rest), parent=context) as inner:
            return name, inner.params


# --- commands and settings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["image", "compose", "kubernetes", "systemd"])
def test_the_command_that_is_started_is_understood(place: str) -> None:
    name, options = parsed(served()[place])

    assert (name, options["files"], options["port"]) == ("serve", ["app.py"], str(PORT))
    assert options["host"] == ("127.0.0.1" if place == "systemd" else "0.0.0.0")


def test_commands_in_comments_are_understood() -> None:
    found = commented_commands()
    assert len(found) >= 2, "the pattern finds what is there"
    for text in found:
        parsed(shlex.split(text))


def test_a_command_that_does_not_exist_is_not_understood() -> None:
    with pytest.raises(typer.TyperException):
        parsed(["serve", "app.py", "--hots", "0.0.0.0"])


@pytest.mark.parametrize("file", [file for file in DEPLOY.rglob("*") if file.is_file()], ids=lambda file: file.name)
def test_every_setting_that_a_file_names_exists(file: Path) -> None:
    own = {"WEFT_SKIP_UI", "WEFT_HOSTS", "WEFT_IMAGE"}  # of the build, and of the compose file itself
    assert set(re.findall(r"\bWEFT_[A-Z_]+", file.read_text())) - own <= NAMES


@pytest.mark.parametrize("file", [file for file in DEPLOY.rglob("*") if file.is_file()], ids=lambda file: file.name)
def test_every_path_of_the_server_that_a_file_names_exists(file: Path) -> None:
    named = set(re.findall(r"(?:8420|path:? |uri |= )(/[a-z]+z?)\b(?!/)", file.read_text()))
    assert named - {"/data", "/app", "/tmp"} <= PATHS


# --- the image ----------------------------------------------------------------------------------------------------


def test_the_image_runs_as_a_plain_user_with_a_health_check_on_its_own_port() -> None:
    (user,) = instructions("image", "USER")
    (made,) = [one.text for one in instructions("image", "RUN") if one.text.startswith("useradd")]

    assert user.text == "10001:10001"
    assert "--uid 10001" in made
    assert f"127.0.0.1:{PORT}/healthz" in healthcheck()[-1]
    assert [one.text for one in instructions("image", "EXPOSE")] == [str(PORT)]
    assert [one.words for one in instructions("image", "ENTRYPOINT")] == [["weft"]]


def test_the_image_has_what_every_setting_of_the_store_needs() -> None:
    extras = set(re.findall(r"--extra (\S+)", (DEPLOY / "Dockerfile").read_text()))
    assert extras >= {"server", "postgres", "redis", "s3"}  # WEFT_URL, WEFT_REDIS, WEFT_BLOBS


def test_only_the_result_of_the_build_is_in_the_image() -> None:
    assert [one.text for one in instructions("image", "COPY")] == ["--from=build /opt/weft /opt/weft"]


def test_everything_that_is_copied_into_the_build_exists_and_is_not_ignored() -> None:
    sources = [word for one in instructions("build", "COPY") for word in one.text.split()[:-1]]
    allowed = [line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"]

    assert sorted(sources) == sorted(allowed)
    assert [source for source in sources if not (ROOT / source).exists()] == []


# --- compose ------------------------------------------------------------------------------------------------------


def test_the_compose_file_waits_for_postgres_and_has_no_privileges() -> None:
    (file,) = documents("compose.yaml")
    weft = file["services"]["weft"]

    assert weft["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert weft["environment"]["WEFT_URL"].endswith("@postgres:5432/weft")
    assert (weft["read_only"], weft["cap_drop"]) == (True, ["ALL"])
    assert set(file["volumes"]) == {volume.partition(":")[0] for volume in file["services"]["postgres"]["volumes"]}
    assert [port for port in weft["ports"] if not port.startswith("127.0.0.1:")] == []


def test_no_password_is_in_the_compose_file() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    variables = set(re.findall(r"\$\{([A-Z_]+)", text))
    example = (DEPLOY / ".env.example").read_text()

    assert text.count("${POSTGRES_PASSWORD:?") == 2, "an empty password is refused"
    assert variables == set(re.findall(r"^([A-Z_]+)=", example, re.MULTILINE))


@pytest.mark.skipif(shutil.which("docker") is None, reason="docker is not here")
def test_docker_compose_accepts_the_file(tmp_path: Path) -> None:
    known = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
    if known.returncode != 0:
        pytest.skip("docker has no compose")
    environment = {**os.environ, "POSTGRES_PASSWORD": "secret"}
    command = ["docker", "compose", "-f", DEPLOY / "compose.yaml", "config", "--quiet"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- kubernetes ---------------------------------------------------------------------------------------------------


def test_the_manifests_belong_together() -> None:
    deployment, service, budget = (manifest(kind) for kind in ("Deployment", "Service", "PodDisruptionBudget"))
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    assert deployment["spec"]["selector"]["matchLabels"] == labels
    assert service["spec"]["selector"] == labels
    assert budget["spec"]["selector"]["matchLabels"] == labels
    assert budget["spec"]["minAvailable"] < deployment["spec"]["replicas"], "or no node could be drained"
    assert container["ports"] == [{"name": "http", "containerPort": PORT}]
    assert service["spec"]["ports"][0]["targetPort"] == "http"
    assert container["envFrom"] == [{"secretRef": {"name": manifest("Secret")["metadata"]["name"]}}]
    assert set(manifest("Secret")["stringData"]) <= NAMES


def test_probes_ask_what_they_are_for() -> None:
    (container,) = manifest("Deployment")["spec"]["template"]["spec"]["containers"]
    asked = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}

    assert {name: probe["path"] for name, probe in asked.items()} == {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }
    assert {probe["port"] for probe in asked.values()} == {"http"}


def test_a_pod_has_no_privileges() -> None:
    spec = manifest("Deployment")["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    assert spec["securityContext"]["runAsNonRoot"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


FIELDS = {
    "Deployment": {"replicas", "selector", "strategy", "template"},
    "Service": {"selector", "ports"},
    "PodDisruptionBudget": {"minAvailable", "selector"},
    "pod": {
        "automountServiceAccountToken", "terminationGracePeriodSeconds", "securityContext", "topologySpreadConstraints",
        "containers", "volumes",
    },
    "container": {
        "name", "image", "args", "envFrom", "ports", "startupProbe", "livenessProbe", "readinessProbe", "lifecycle",
        "resources", "securityContext", "volumeMounts",
    },
    "probe": {"httpGet", "periodSeconds", "timeoutSeconds", "failureThreshold"},
}  # fmt: skip
"""The fields of the API of Kubernetes that the manifests use. A misspelt one is not among them."""
VERSIONS = {"Deployment": "apps/v1", "Service": "v1", "Secret": "v1", "PodDisruptionBudget": "policy/v1"}


@pytest.mark.parametrize("kind", list(VERSIONS))
def test_a_manifest_has_only_fields_that_kubernetes_knows(kind: str) -> None:
    found = manifest(kind)
    assert found["apiVersion"] == VERSIONS[kind]
    assert set(found) <= {"apiVersion", "kind", "metadata", "spec", "type", "stringData"}
    assert set(found.get("spec", {})) <= FIELDS.get(kind, set())
    if kind == "Deployment":
        pod = found["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert set(pod) <= FIELDS["pod"]
        assert set(container) <= FIELDS["container"]
        assert all(set(container[name]) <= FIELDS["probe"] for name in container if name.endswith("Probe"))


# --- stopping -----------------------------------------------------------------------------------------------------


def test_every_platform_waits_until_a_host_has_stopped() -> None:
    spec = manifest("Deployment")["spec"]["template"]["spec"]
    asleep = int(spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["weft"]

    assert spec["terminationGracePeriodSeconds"] >= asleep + STOP_SECONDS + 5
    assert seconds(compose["stop_grace_period"]) >= STOP_SECONDS + 5
    assert seconds(unit()["Service"]["TimeoutStopSec"]) >= STOP_SECONDS + 5


# --- systemd ------------------------------------------------------------------------------------------------------


def test_the_unit_is_hardened_and_restarted() -> None:
    service = unit()["Service"]

    assert (service["User"], service["Restart"], service["NoNewPrivileges"]) == ("weft", "always", "yes")
    assert (service["ProtectSystem"], service["CapabilityBoundingSet"]) == ("strict", "")
    (url,) = re.findall(r"^WEFT_URL=sqlite:///(.*)$", (DEPLOY / "systemd" / "weft.env").read_text(), re.MULTILINE)
    assert Path(url).parent == Path("/var/lib") / service["StateDirectory"], "the only folder that it may write to"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_calls_the_unit_well_protected() -> None:
    command = ["systemd-analyze", "security", "--offline=true", str(DEPLOY / "systemd" / "weft.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for weft.service: ([\d.]+)", done.stdout)
    if found is None:
        pytest.skip("this systemd cannot judge a unit that is not installed")

    assert float(found[1]) < 2.5, done.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    # The program, its user and its folder are not on this machine: those of the machine stand in for them.
    text = (DEPLOY / "systemd" / "weft.service").read_text()
    text = text.replace("/opt/weft/bin/weft", shutil.which("true") or "/bin/true")
    (tmp_path / "weft.service").write_text(re.sub(r"^(User|Group)=weft$", r"\1=root", text, flags=re.MULTILINE))

    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "weft.service")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    told = [line for line in done.stderr.splitlines() if "weft.service" in line]
    assert (done.returncode, told) == (0, []), done.stderr
