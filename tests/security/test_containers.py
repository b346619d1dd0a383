"""Whoever may start runs may run commands: in containers that takes a login and a fixed job."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import text

from library.rights import rights_on
from services.prefect_server import OWN_NAMES
from store.database import open_store
from store.driver import libpq_url, parse_url
from store.embedded import EmbeddedPostgres
from store.embedded import _program as program
from store.home import Home
from store.migrations import migrate
from tests.unit.test_containers import COMPOSE, DOCKER, ROOT, SERVICES, containers
from tests.unit.test_containers import JOBS as POOL_JOBS

LOGIN, SERVER_LOGIN = "PREFECT_API_AUTH_STRING", "PREFECT_SERVER_API_AUTH_STRING"
JOBS = [*POOL_JOBS.values()]


def command_of(one: dict[str, Any]) -> str:
    return " ".join(str(word) for word in [*one.get("command", []), *one.get("args", [])])


def serves(one: dict[str, Any]) -> bool:
    return "services.prefect_server" in command_of(one)


def test_the_server_of_compose_asks_for_a_login_that_must_be_chosen() -> None:
    (server,) = [one for one in SERVICES.values() if serves(one)]
    assert re.fullmatch(
        r"homer:\$\{HOMER_PREFECT_PASSWORD:\?[\w ]+\}", server["environment"][SERVER_LOGIN]
    )
    assert server["ports"] == ["127.0.0.1:4200:4200"]


def test_every_service_that_asks_prefect_has_the_login_of_its_server() -> None:
    (server,) = [one for one in SERVICES.values() if serves(one)]
    asking = {
        name for name, one in SERVICES.items() if "PREFECT_API_URL" in one.get("environment", {})
    }
    assert {"worker", "app", "api", "deploy", "pool", "homer"} <= asking
    for name in asking:
        assert SERVICES[name]["environment"][LOGIN] == server["environment"][SERVER_LOGIN], name
    assert LOGIN not in SERVICES["postgres"]["environment"]


def test_the_server_of_kubernetes_asks_for_a_login_from_a_secret() -> None:
    (server,) = [one for _, one in containers() if serves(one)]
    (given,) = [one for one in server["env"] if one["name"] == SERVER_LOGIN]
    assert given["valueFrom"]["secretKeyRef"] == {"name": "homer-prefect", "key": LOGIN}


def test_every_container_that_asks_prefect_takes_the_login_from_the_secret() -> None:
    asking = {
        name: one
        for name, one in containers()
        if {"configMapRef": {"name": "homer"}} in one.get("envFrom", [])
    }
    assert {"worker/worker", "jobs/jobs", "app/app", "api/api", "job/prefect-job"} <= set(asking)
    for name, one in asking.items():
        assert {"secretRef": {"name": "homer-prefect"}} in one["envFrom"], name


def test_servers_answer_to_the_name_that_clients_use_and_to_no_other() -> None:
    commands = [command_of(one) for one in SERVICES.values() if serves(one)]
    commands += [command_of(one) for _, one in containers() if serves(one)]
    assert len(commands) == 2
    for command in commands:
        assert re.findall(r"--name (\S+)", command) == ["prefect"]


@pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
def test_probes_name_a_host_that_the_server_answers_to(probe: str) -> None:
    """Else they name the pod's address, which it refuses, and the pod never gets ready."""
    (server,) = [one for _, one in containers() if serves(one)]
    (header,) = server[probe]["httpGet"]["httpHeaders"]
    assert header["name"] == "Host"
    assert header["value"] in OWN_NAMES


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_a_run_may_vary_nothing_of_a_job(path: Path) -> None:
    template = json.loads(path.read_text())
    assert template["variables"]["properties"] == {}
    assert template["variables"]["additionalProperties"] is False
    assert "{{" not in json.dumps(template)
    # Prefect merges the environment that a run asks for into one that is there.
    assert "env" not in template["job_configuration"]


def test_deployments_ask_for_nothing_of_a_job() -> None:
    for path in (DOCKER / "deployments.yaml", ROOT / "prefect.yaml"):
        for one in yaml.safe_load(path.read_text())["deployments"]:
            assert set(one["work_pool"]) == {"name"}, one["name"]


def test_pools_are_made_with_a_fixed_job() -> None:
    """Prefect's own job lets a run name any command."""
    made = [command_of(one) for one in SERVICES.values()]
    made += [command_of(one) for _, one in containers()]
    making = [command for command in made if "work-pool create" in command]
    assert len(making) == 3
    for command in making:
        (named,) = re.findall(r"--base-job-template=(\S+)", command)
        assert ROOT / named in JOBS
    documented = (DOCKER / "README.md").read_text().replace("\\\n", " ")
    for line in re.findall(r".*work-pool create.*", documented):
        assert "docker_job.json" in line
        assert "--base-job-template" in line


def test_the_database_user_is_no_superuser(home: Home) -> None:
    """A superuser of Postgres may run commands and read files of its server."""
    settings = yaml.safe_load_all((DOCKER / "kubernetes" / "settings.yaml").read_text())
    (prepared,) = [one["data"]["databases.sql"] for one in settings if len(one["data"]) == 1]
    assert prepared == COMPOSE["configs"]["databases"]["content"]
    (manifest,) = [one for name, one in containers() if name == "postgres/postgres"]
    given = {*SERVICES["postgres"]["environment"], *(one["name"] for one in manifest["env"])}
    assert given == {"POSTGRES_PASSWORD"}, "else its user would be the superuser"
    server = EmbeddedPostgres(home, fsync=False)
    server.start()
    try:
        done = subprocess.run(
            [
                program("psql"),
                "-v",
                "ON_ERROR_STOP=1",
                libpq_url(parse_url(server.url("postgres"))),
            ],
            input=re.sub(r"\bhomer\b", "watcher", prepared),
            env={**os.environ, "POSTGRES_PASSWORD": "p'w"},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        migrate(url := server.url("watcher").replace("homer@", "watcher@"))
        with open_store(home, url) as store:
            rights_on(store)
            role = "SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user"
            for user in (store, store.for_viewer("ana@example.org")):
                with user.begin() as session:
                    assert session.execute(text(role)).all() == [(False, False)]
    finally:
        server.stop()


def test_images_are_of_a_version_and_a_digest() -> None:
    named = re.findall(r"^FROM (\S+)", (DOCKER / "Dockerfile").read_text(), re.M)
    named += [one["image"] for one in (*SERVICES.values(), *dict(containers()).values())]
    others = {image for image in named if image.partition(":")[0] != "homer"}
    assert len(others) == 2
    assert [
        image for image in others if not re.search(r":\d+\.\d+\.\d+-.*@sha256:[0-9a-f]{64}$", image)
    ] == []


def test_no_job_has_the_login_in_the_clear() -> None:
    """Prefect's worker writes its login into each job, unless it is told of a secret."""
    (worker,) = [one for name, one in containers() if name == "jobs/jobs"]
    given = {one["name"].rpartition("WORKER_")[2]: one["value"] for one in worker["env"]}
    assert given["API_AUTH_STRING_SECRET_NAME"] == "homer-prefect"
    assert given["API_AUTH_STRING_SECRET_KEY"] == LOGIN
    for path in JOBS:
        assert LOGIN not in path.read_text()


def test_what_a_container_writes_is_its_user_s_alone(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^ENTRYPOINT (\[.*\])", (DOCKER / "Dockerfile").read_text(), re.M)
    subprocess.run([*json.loads(shown), "touch", str(tmp_path / "a b")], check=True)
    assert stat.S_IMODE((tmp_path / "a b").stat().st_mode) == 0o600
    # A manifest's "command" would be run instead of the image's entry point.
    assert not [name for name, one in containers() if "command" in one]


def test_the_command_of_compose_writes_for_its_user_alone_too(tmp_path: Path) -> None:
    entry = [word.replace("$$", "$") for word in SERVICES["homer"]["entrypoint"]]
    stub = tmp_path / "homer"
    stub.write_text('#!/bin/sh\ntouch "$2"\n')
    stub.chmod(0o700)
    asked = [*entry, "touch", str(tmp_path / "a b")]
    subprocess.run(asked, check=True, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert stat.S_IMODE((tmp_path / "a b").stat().st_mode) == 0o600
