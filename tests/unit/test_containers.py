"""The containers: files that hold to their schemas, commands that parse, users that are not root.

There is no Docker here: what can be said without one is.
"""

from __future__ import annotations

import http.server
import importlib
import json
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import kubernetes_validate
import prefect
import pytest
import yaml

import services.prefect_server
import ui.__main__
from services.supervisor import QUIET
from tests.unit.test_documents import parse

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
OURS = sorted(name for name, one in SERVICES.items() if one["image"] == "homer")
SERVING = {"app": "8501", "api": "8600", "prefect": "4200", "worker": "8080"}
MANIFESTS = sorted(
    path for path in (DOCKER / "kubernetes").rglob("*.yaml") if path.name != "kustomization.yaml"
)
DEPLOYMENTS = yaml.safe_load((DOCKER / "deployments.yaml").read_text())
IMAGE = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
USER = 10001
SECRET = "PASSWORD|KEY|AUTH"
JOBS = {
    "homer": ROOT / "flows" / "schedules" / "process_job.json",
    "homer-docker": DOCKER / "docker_job.json",
    "homer-kubernetes": DOCKER / "kubernetes" / "jobs" / "template.json",
}


def resources() -> list[Any]:
    return [one for path in MANIFESTS for one in yaml.safe_load_all(path.read_text())]


def pods() -> Iterator[tuple[str, Any]]:
    for one in resources():
        if "template" in one.get("spec", {}):
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]
    yield "job", rendered()["spec"]["template"]["spec"]


def rendered() -> Any:
    """The job of the Kubernetes work pool, with the command and environment that Prefect adds."""
    template = json.loads((DOCKER / "kubernetes" / "jobs" / "template.json").read_text())
    job = template["job_configuration"]["job_manifest"]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    container["args"] = ["prefect", "flow-run", "execute"]
    container["env"] = [{"name": "PREFECT__FLOW_RUN_ID", "value": "1"}]
    return job


def containers() -> Iterator[tuple[str, Any]]:
    for name, pod in pods():
        for one in [*pod.get("initContainers", []), *pod["containers"]]:
            yield f"{name}/{one['name']}", one


def test_the_compose_file_holds_to_its_schema() -> None:
    checking = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run(
        [*checking, str(DOCKER / "compose.yaml")], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_hold_to_their_schemas(path: Path) -> None:
    found = list(yaml.safe_load_all(path.read_text()))
    assert found
    for one in found:
        kubernetes_validate.validate(one, "1.30", strict=True)
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    # Not every tool that reads manifests knows these.
    assert not re.search(r"(: |- )[&*][a-z]|<<:", path.read_text())


def test_the_jobs_of_the_kubernetes_pool_hold_to_their_schema() -> None:
    kubernetes_validate.validate(rendered(), "1.30", strict=True)


@pytest.mark.parametrize("folder", ["kubernetes", "kubernetes/jobs"])
def test_every_manifest_is_applied(folder: str) -> None:
    here = DOCKER / folder
    named = yaml.safe_load((here / "kustomization.yaml").read_text())["resources"]
    assert all((here / name).exists() for name in named)
    there = {path.name for path in here.glob("*.yaml")} - {"kustomization.yaml"}
    assert there == set(named) - {".."}


@pytest.mark.parametrize("name", OURS)
def test_no_service_of_ours_is_root_or_can_write_its_root(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] == f"{USER}:{USER}"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service["tmpfs"] == ["/tmp"]  # noqa: S108
    assert {"cpus", "memory"} <= set(service["deploy"]["resources"]["limits"])


def test_no_container_of_kubernetes_is_root_or_can_write_its_root() -> None:
    assert len(list(containers())) >= 10
    for _name, pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] in (USER, 999)
        assert pod["enableServiceLinks"] is False
    for name, one in containers():
        context = one["securityContext"]
        assert context["readOnlyRootFilesystem"] is True, name
        assert context["allowPrivilegeEscalation"] is False, name
        assert context["capabilities"] == {"drop": ["ALL"]}, name
        assert {"cpu", "memory"} <= set(one["resources"]["limits"]), name
        assert "/tmp" in [mount["mountPath"] for mount in one["volumeMounts"]]  # noqa: S108


def test_what_serves_is_asked_for_its_health_and_waited_for() -> None:
    for name, port in SERVING.items():
        assert SERVICES[name]["environment"]["HOMER_HEALTH"].startswith(f"http://127.0.0.1:{port}/")
    healthy = {name for name, one in SERVICES.items() if "healthcheck" in one} | set(SERVING)
    for one in SERVICES.values():
        for needed, how in one.get("depends_on", {}).items():
            once = SERVICES[needed].get("restart") == "no"
            wanted = "service_completed_successfully" if once else "service_healthy"
            assert how["condition"] == wanted
            assert once or needed in healthy
    ports = {
        name: one["readinessProbe"]["httpGet"]["port"]
        for name, one in containers()
        if "httpGet" in one.get("readinessProbe", {})
    }
    named = {name.partition("/")[2]: str(port) for name, port in ports.items()}
    assert named == {**SERVING, "jobs": "8080"}


def test_no_file_has_a_secret() -> None:
    for path in [path for path in DOCKER.rglob("*") if path.is_file()]:
        assert not re.search(r"://[^/\s@:]+:[^@/\s]+@", path.read_text()), path
    for one in SERVICES.values():
        for key, value in one.get("environment", {}).items():
            if re.search(SECRET, key):
                assert re.fullmatch(r"(homer:)?\$\{\w+:\?[\w ]+\}", value), key
    for name, one in containers():
        for given in one.get("env", []):
            named = given["name"].endswith(("_SECRET_NAME", "_SECRET_KEY"))
            assert named or "value" not in given or not re.search(SECRET, given["name"]), name
    assert not [one for one in resources() if one["kind"] == "Secret"]


def command_of(service: dict[str, Any]) -> list[str]:
    """The command of a Compose service, without the shell that sets the umask."""
    shell = service.get("entrypoint", ["exec"])
    return [*(re.findall(r"exec (\w+)", shell[2]) if len(shell) > 1 else []), *service["command"]]


COMMANDS = [
    *((name, command_of(one)) for name, one in SERVICES.items() if "command" in one),
    *((name, one["args"]) for name, one in containers() if "args" in one),
]


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_commands_are_real(name: str, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = [str(word) for word in command]
    if words[0] == "homer":
        assert words[1:] == ["--help"] or parse(words[1:])
    elif words[0] == "prefect":
        # Its own entry point strips the flag for all commands before this.
        known = importlib.import_module("prefect.cli._app")._app
        given = [word for word in words[1:] if word != "--no-prompt"]
        _command, bound, _ = known.parse_args(given, exit_on_error=False, print_error=False)
        # The files that it names are there.
        for key in ("prefect_file", "base_job_template"):
            if bound.arguments.get(key):
                assert (ROOT / bound.arguments[key]).is_file()
    elif words[:3] == ["python", "-m", "services.prefect_server"]:
        assert services.prefect_server.parser().parse_args(words[3:]).name == ["prefect"]
    else:
        assert words[:3] == ["python", "-m", "ui"], name
        begun: list[tuple[str, int]] = []
        monkeypatch.setattr(
            ui.__main__, "run", lambda host, port, _folders=(): begun.append((host, port))
        )
        monkeypatch.setattr(sys, "argv", words[2:])
        ui.__main__.main()
        assert begun == [("0.0.0.0", 8501)]


def test_the_api_listens_where_it_is_asked_for_its_health_and_needs_its_key() -> None:
    serving = [[str(word) for word in words] for _, words in COMMANDS if words[1:2] == ["serve"]]
    assert len(serving) == 2
    for words in serving:
        assert words[words.index("--port") + 1] == SERVING["api"]
        assert words[words.index("--address") + 1] == "0.0.0.0"
        assert words[words.index("--videos") + 1] == "/videos"
    assert "HOMER_API_KEY" in SERVICES["api"]["environment"]
    (deployed,) = [one for name, one in containers() if name == "api/api"]
    assert {"secretRef": {"name": "homer-api"}} in deployed["envFrom"]
    others = [one for name, one in SERVICES.items() if name != "api"]
    assert not any("HOMER_API_KEY" in one.get("environment", {}) for one in others)


def test_the_server_is_the_one_whose_scheduler_works() -> None:
    """Prefect's own command would begin no scheduled run: see ``services.prefect_server``."""
    assert len([command for _, command in COMMANDS if "services.prefect_server" in command]) == 2
    assert not any("server" in command for _, command in COMMANDS)


def test_the_image_has_what_it_names_and_is_not_root() -> None:
    copied = [word for line in re.findall(r"^COPY (.*)", IMAGE, re.M) for word in line.split()[:-1]]
    assert copied
    assert all((ROOT / name).exists() for name in copied)
    assert re.findall(r"^USER (.*)", IMAGE, re.M) == [f"{USER}:{USER}"]
    assert f"--uid {USER}" in IMAGE
    (health,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])", IMAGE, re.M)
    assert (ROOT / json.loads(health)[1]).is_file()
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert not {"docker", "flows", "alembic", "README.md", "requirements.lock"} & set(ignored)
    assert {"**/.env", ".git", ".venv"} <= set(ignored)


def test_the_image_has_the_library_that_a_package_looks_for_and_the_base_lacks() -> None:
    package = Path(cast("str", cast("Any", find_spec("xllamacpp")).origin)).parent
    assert any(b"\0libgomp.so.1\0" in one.read_bytes() for one in package.glob("*.so"))
    assert re.search(r"^RUN apt-get update .*install .*libgomp1", IMAGE, re.M)


def test_what_the_image_holds_may_be_read_whatever_the_checkout_was_made_with() -> None:
    assert IMAGE.index("COPY . .") < IMAGE.index("chmod -R a+rX .") < IMAGE.index("USER ")


def test_nothing_that_runs_in_the_image_tells_anybody_of_itself() -> None:
    (settings,) = re.findall(r"^ENV (HOMER_HOME.*)", IMAGE, re.M)
    given = dict(word.split("=", 1) for word in settings.split())
    quiet = {key: value for key, value in QUIET.items() if "LOGGING" not in key}
    assert quiet.items() <= given.items()
    folders = [given[key] for key in given if key.endswith(("HOME", "DIRECTORY", "CONFIG"))]
    assert len(folders) == 5
    assert all(place.startswith(("/data", "/tmp")) for place in folders)  # noqa: S108


@pytest.mark.parametrize("one", DEPLOYMENTS["deployments"], ids=lambda one: str(one["name"]))
def test_deployments_are_of_flows_and_their_pools_know_what_they_name(one: Any) -> None:
    path, _, name = one["entrypoint"].partition(":")
    flow = getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), name)
    assert isinstance(flow, prefect.Flow)
    (step,) = one["pull"]
    (workdir,) = re.findall(r"^WORKDIR (.*)", IMAGE, re.M)
    assert step["prefect.deployments.steps.set_working_directory"] == {"directory": workdir}
    assert set(one["work_pool"]) == {"name"}
    assert JOBS[one["work_pool"]["name"]].is_file()


@pytest.mark.parametrize("pool", JOBS)
def test_jobs_of_pools_set_what_their_workers_know(pool: str) -> None:
    """A key that a worker does not know would do nothing, without a word."""
    kind = pool.removeprefix("homer").removeprefix("-") or "process"
    job = json.loads(JOBS[pool].read_text())["job_configuration"]
    # Prefect's list is older than the Docker worker (0.7.4).
    newer = {"container_create_kwargs"} if kind == "docker" else set()
    views = files(prefect) / "server" / "api" / "collections_data" / "views"
    known = json.loads((views / "aggregate-worker-metadata.json").read_text())
    (found,) = (workers[kind] for workers in known.values() if kind in workers)
    assert set(job) <= {*found["default_base_job_configuration"]["job_configuration"]} | newer


def test_jobs_run_the_image_that_the_kustomization_names() -> None:
    (image,) = yaml.safe_load((DOCKER / "kubernetes" / "kustomization.yaml").read_text())["images"]
    (container,) = rendered()["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{image['newName']}:{image['newTag']}"


def test_containers_of_the_docker_pool_are_confined_as_those_of_compose() -> None:
    job = json.loads(JOBS["homer-docker"].read_text())["job_configuration"]
    service, confined = COMPOSE["x-homer"], job["container_create_kwargs"]
    for key in ("user", "init", "read_only", "cap_drop", "security_opt"):
        assert confined[key] == service[key], key
    assert list(confined["tmpfs"]) == service["tmpfs"]
    assert job["privileged"] is False
    assert job["mem_limit"] in service["deploy"]["resources"]["limits"]["memory"]
    named = {name: f"{COMPOSE['name']}_{name}" for name in COMPOSE["volumes"]}
    assert f"{named['data']}:/data" in job["volumes"]
    address = service["environment"]["HOMER_DATABASE_URL"]
    assert f"HOMER_DATABASE_URL={address} " in job["command"]
    assert job["command"].endswith(" prefect flow-run execute")


def test_workers_and_deployments_name_the_same_pools() -> None:
    pools = {one["work_pool"]["name"] for one in DEPLOYMENTS["deployments"]}
    asked = {str(word)[7:] for _, command in COMMANDS for word in command if "--pool=" in str(word)}
    assert asked == {"homer", "homer-kubernetes"}
    assert asked < pools
    assert DEPLOYMENTS["prefect-version"] == prefect.__version__


class Answering(http.server.BaseHTTPRequestHandler):
    """Answers 200, or 500 to what is not well."""

    def do_GET(self) -> None:
        self.send_response(500 if "ill" in self.path else 200)
        self.end_headers()

    def log_message(self, *_args: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    server = http.server.HTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_container_is_healthy_where_its_service_answers_or_it_has_none() -> None:
    healthy = runpy.run_path(str(DOCKER / "healthy.py"))["healthy"]
    with serving() as address:
        assert healthy(f"{address}/well")
        assert not healthy(f"{address}/ill")
    assert not healthy(f"{address}/gone")
    assert not healthy("no address")
    assert healthy(None)
    assert healthy("")
