"""``homer up``, ``down`` and ``password``: what runs in the background, and who may come in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from auth.signing_in import is_loopback, read_password_file, remove_password, set_password
from cli.commands import Json
from cli.console import note, say, say_json, say_table
from domain.errors import InputError
from flows.schedules.kinds import start_schedules
from services.supervisor import AppServer, PrefectServer, ScheduleWorker, api_url, login_file
from store.database import open_store
from store.embedded import EmbeddedPostgres
from store.home import Home


def up(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the app. 0: any free port.")
    ] = 8501,
    address: Annotated[
        str,
        typer.Option(
            envvar="HOMER_APP_ADDRESS",
            metavar="HOST",
            help="Address the app listens on. Other than this machine's own, it requires a "
            "sign-in: run 'homer password' first.",
        ),
    ] = "127.0.0.1",
    videos: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder from which the app may add files by their path. Repeatable. Default: "
            "all, or none where people sign in.",
        ),
    ] = None,
    schedules: Annotated[
        bool,
        typer.Option("--schedules/--no-schedules", help="Run scheduled jobs."),
    ] = True,
    json: Json = False,
) -> None:
    """Start the app, Postgres, Prefect's server and the schedule worker in the background.

    It prints their addresses. They run until 'homer down', and listen on this machine only,
    unless --address gives the app another address.

    \b
    Examples:
      homer up
      homer up --port 8080 --no-schedules
      homer up --videos ~/Videos
    """
    home = Home.default().make()
    if missing := [folder for folder in videos or () if not folder.expanduser().is_dir()]:
        raise InputError(f"--videos {missing[0]}: there is no such folder")
    app = AppServer(home, port, address, videos or ())
    methods = app.sign_in_methods()
    note("starting; the first time takes half a minute ...")
    with open_store(home) as store:
        database = repr(store)
    rows = [
        ("database", database),
        ("prefect", PrefectServer(home).start()),
        ("app", app.start()),
    ]
    if schedules:
        rows.append(("schedules", start_schedules(home, api_url(home))))
    _show(rows, json)
    note(f"Prefect's pages ask for a password: the line in {login_file(home)}")
    if not is_loopback(address):
        note(f"the app listens on {address}, unencrypted: put a proxy with TLS before it")
    if methods.required:
        note("people have to sign in to the app")
    if not json:
        say("homer down stops them")


def password(
    file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Read the password from the first line of this file."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the password.")] = False,
) -> None:
    """Set the password of the app, or remove it.

    Without --file, the command asks for the password. Only a salted hash is stored. A new password
    ends all sessions.

    \b
    Examples:
      homer password
      homer password --file password.txt
      homer password --remove
    """
    home = Home.default()
    if remove:
        removed = remove_password(home)
        state = "there is no password any more" if removed else "there was no password"
        return say(f"{state}; `homer down` and `homer up` restart the app")
    given = (
        read_password_file(file) if file else typer.prompt("Password", hide_input=True, err=True)
    )
    if file is None:
        again = typer.prompt("The same again", hide_input=True, err=True)
        if again != given:
            raise typer.BadParameter("these are two different ones")
    set_password(home, given)
    return say("the app asks for this password; one that runs open does after `homer down`, `up`")


def down(json: Json = False) -> None:
    """Stop the app, the schedule worker, Prefect's server and the embedded Postgres."""
    home = Home.default()
    stopped = {
        "app": AppServer(home).stop(),
        "schedules": ScheduleWorker(home).stop(),
        "prefect": PrefectServer(home).stop(),
        "database": EmbeddedPostgres(home).stop(),
    }
    _show([(name, "stopped" if was else "did not run") for name, was in stopped.items()], json)


def _show(rows: list[tuple[str, str]], as_json: bool) -> None:
    say_json(dict(rows)) if as_json else say_table(("service", "state"), rows)


def register(app: typer.Typer) -> None:
    for command in (up, down, password):
        app.command()(command)
