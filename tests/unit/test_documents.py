"""What the documents say is so: their commands parse, their files and targets are there."""

from __future__ import annotations

import ast
import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cli.commands import STOPPED
from domain import errors
from domain.settings import Settings
from tests.support.commands import homer
from tests.support.documents import generated, with_generated
from tests.support.packages import homer_packages

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "docker" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
COMMAND = homer()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def commands_in(path: Path) -> Iterator[str]:
    """Every ``homer ...`` command line of a document's code."""
    text = path.read_text()
    for line in "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines():
        found = re.match(r"(?:[A-Z_]+=\S+ )?(homer .*?)(?:\s+#.*| \|.*)?$", line.strip())
        if found:
            yield found[1]
    yield from re.findall(r"`(homer [a-z][^`]*)`", text)


def parse(arguments: list[str]) -> str:
    """Parses a command line as ``homer`` would, without running it; returns the command."""
    command: Any = COMMAND
    context = command.make_context("homer", list(arguments), resilient_parsing=False)
    names: list[str] = []
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        if not rest:
            break
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None, name
        names.append(name)
        context = command.make_context(name, rest, parent=context)
    return " ".join(names)


@pytest.mark.parametrize(
    ("page", "line"), [(path.name, line) for path in PAGES for line in commands_in(path)]
)
def test_every_command_in_the_documents_parses(page: str, line: str) -> None:
    words = shlex.split(line)[1:]
    if words[0] == "COMMAND":
        return
    # A page may name a command without its arguments.
    if page == "README.md" or not set(words) <= set(COMMAND.commands) | {"--direct"}:
        assert parse(words)


@pytest.mark.parametrize("name", ["commands.md", "api.md", "mcp.md"])
def test_a_page_has_what_the_registry_has(name: str) -> None:
    page = (ROOT / "docs" / name).read_text()
    assert with_generated(page, generated()[name]) == page, "run `make documents`"


def test_the_page_of_commands_has_every_exit_code() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    shown = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    codes = {one.exit_code for one in kinds if issubclass(one, errors.HomerError)}
    assert shown == codes | {0, STOPPED}


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    """Each linked file exists, and has the linked heading."""
    for target in re.findall(r"\]\(([^)]+)\)", path.read_text()):
        name, _, anchor = target.partition("#")
        if not target.startswith("http"):
            page = path.parent / name if name else path
            assert page.exists(), target
            assert not anchor or anchor in headings(page), target


def headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_variable_in_the_documents_is_read_and_every_one_is_documented() -> None:
    variable = re.compile(r"\bHOMER_[A-Z_]+\b")
    code = [path for name in homer_packages() for path in (ROOT / name).rglob("*.py")]
    read = {name for path in code for name in variable.findall(path.read_text())}
    read -= {"HOMER_ACTING", "HOMER_JOB_END"}  # Homer sets these for its own jobs.
    assert set(variable.findall((ROOT / "docs" / "commands.md").read_text())) == read
    mentioned = {name for path in PAGES for name in variable.findall(path.read_text())}
    docker = "\n".join(p.read_text() for p in (ROOT / "docker").rglob("*") if p.is_file())
    assert mentioned - read <= set(variable.findall(docker)) | {"HOMER_POOL"}


def test_every_setting_in_the_documents_exists_and_has_the_default_shown() -> None:
    shown = r"`settings((?:\.[a-z_]+)+)`(?: \(([0-9][0-9.,]*)(?=[,)]))?"
    named = [one for path in PAGES for one in re.findall(shown, path.read_text())]
    assert len(named) > 10
    for path, default in named:
        value: Any = Settings()
        for part in path.strip(".").split("."):
            value = getattr(value, part)
        if default:
            assert float(default.replace(",", "")) == value, path


@pytest.mark.parametrize("table", ["stream", "imports", "alerts"])
def test_a_table_of_settings_has_all_of_them_with_their_defaults(table: str) -> None:
    page = {"stream": "streams.md", "imports": "profiles.md", "alerts": "alerts.md"}[table]
    row = r"^\| `(\w+)` \| ([0-9 .]+?|false|\[\]) \|"
    shown = re.findall(row, (ROOT / "docs" / page).read_text(), re.MULTILINE)
    defaults = getattr(Settings(), table).model_dump(mode="json")
    assert {name: json.loads(value.replace(" ", "")) for name, value in shown} == defaults


@pytest.mark.parametrize("path", [*PAGES, ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_make_targets_exist(path: Path) -> None:
    for target in re.findall(r"(?:^|`|\n)make ([a-z-]+)", path.read_text()):
        assert target in TARGETS


def test_ci_runs_the_readmes_test_command_and_no_other() -> None:
    readme = (ROOT / "README.md").read_text()
    (output,) = re.findall(r"^(make \S+)\s+# sets everything up, runs every", readme, re.MULTILINE)
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert output == "make test"
    assert [line for line in lines if line.startswith("make ")] == [output]
    assert lines[0] == "#!/bin/bash"


@pytest.mark.parametrize(
    "name", [".ci/run", "demo/run.sh", "scripts/make-venv"], ids=lambda name: Path(name).name
)
def test_scripts_are_executable_and_whole(name: str) -> None:
    path = ROOT / name
    assert path.stat().st_mode & 0o111
    shell = path.read_text().splitlines()[0].removeprefix("#!")
    subprocess.run([shell, "-n", str(path)], check=True)


def test_notice_names_every_demo_clip_and_each_licence() -> None:
    notice = (ROOT / "NOTICE").read_text()
    clips = [path.name for path in (ROOT / "demo").iterdir() if path.suffix != ".sh"]
    assert clips
    assert [name for name in clips if name not in notice] == []
    assert "Apache" in notice
    assert "MIT" in notice
    assert "non-commercial" in notice


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "requirements-dev.lock", "requirements-train.lock"]
)
def test_locks_pin_every_package_and_name_no_registry(lock: str) -> None:
    lines = (ROOT / lock).read_text().split("\n")
    pins = [line for line in lines if line and not line.startswith("#")]
    pinned = r"[A-Za-z0-9._-]+==[0-9A-Za-z.+!]+( ; [^#]+?)?( --hash=sha256:[0-9a-f]{64})+"
    assert [pin for pin in pins if not re.fullmatch(pinned, pin)] == []
    names = {pin.split("==")[0] for pin in pins}
    assert "opencv-python" not in names
    assert "opencv-python-headless" in names
    assert lock == "requirements-train.lock" or {"hatchling", "editables"} <= names


def test_what_is_installed_is_what_was_locked() -> None:
    """A registry, or who stands before it, gives no other package of that version."""
    for file in ("Makefile", "docker/Dockerfile"):
        taking = re.findall(r".*-r requirements\S*\.lock", (ROOT / file).read_text())
        assert {"--require-hashes" in line for line in taking} == {True}
    locked = (ROOT / "requirements-dev.lock").read_text()
    assert (ROOT / "constraints.txt").read_text() == re.sub(r" --hash=\S+", "", locked)


def test_the_locks_have_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runtime = set(re.findall(r"^([^=\n]+)==", (ROOT / "requirements.lock").read_text(), re.M))
    dev_lines = (ROOT / "requirements-dev.lock").read_text()
    dev = set(re.findall(r"^([^=\n]+)==", dev_lines, re.M))
    groups = project["optional-dependencies"]
    train = {_name(wanted) for wanted in groups.pop("train")}
    extras = [name for group in groups.values() for name in group]
    wanted = {_name(wanted) for wanted in project["dependencies"]}
    assert wanted - {"opencv-python"} <= runtime
    assert "opencv-python" in wanted
    assert {_name(wanted) for wanted in extras} <= dev
    assert runtime <= dev
    assert train.isdisjoint(dev)
    lines = (ROOT / "requirements-train.lock").read_text()
    pinned = dict(re.findall(r"^([^=\n]+)==([^ \n]+)", lines, re.M))
    shared = dict(re.findall(r"^([^=\n]+)==([^ \n]+)", dev_lines, re.M))
    assert train <= pinned.keys()
    assert {name for name in pinned.keys() & shared.keys() if pinned[name] != shared[name]} == set()


def test_make_lock_has_every_extra_in_one_of_the_locks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (listed,) = re.findall(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert {*listed.split(), "train"} == set(project["optional-dependencies"])


def _name(wanted: str) -> str:
    return re.split(r"[<>=\[ ]", wanted)[0].lower()


def test_profiles_in_the_documents_load(tmp_path: Path) -> None:
    from models.profile import load_profile

    text = (ROOT / "docs" / "profiles.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 7
    config = tmp_path / "homer.toml"
    config.write_text("\n".join(blocks))
    assert load_profile("mine", config).faces == "yunet_sface"
    assert load_profile("mine", config).settings.ask.rounds == 6
    (seeing,) = load_profile("seeing", config).hub_models
    assert (seeing.name, seeing.need) == ("Xenova/siglip-base-patch16-224", "images")
    assert load_profile("multilingual", config).encoder.query_prefix == "query: "
    assert load_profile("reading", config).sentences["de"] == "de_core_news_sm"
    assert load_profile("endpoint", config).encoder.base_url == "http://localhost:8080/v1"
    assert load_profile("house", config).chat_for("act").base_url == "http://127.0.0.1:8000/v1"


def test_every_bundled_profile_is_documented() -> None:
    from models.specs import bundled_profiles

    text = (ROOT / "docs" / "profiles.md").read_text()
    assert [name for name in bundled_profiles() if f"`{name}`" not in text] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_documents_name_is_there(page: Path) -> None:
    """Each ``package/file.py`` exists, and has the function or ``Class.method`` after the colon."""
    text = page.read_text()
    named = re.findall(r"\b((?:[a-z_]+/)+[a-z_]+\.py)(?::([A-Za-z_]+(?:\.[a-z_]+)?))?", text)
    assert len(named) > 40 or page.name != "architecture.md"
    # A constant, as in `WIDE` (`store/queries/search.py`).
    constants = re.findall(r"`([A-Z_]+)`(?: \w+)? \(`([a-z_/]+\.py)`\)", text)
    named += [(path, name) for name, path in constants]
    for path, name in named:
        assert (ROOT / path).is_file(), path
        assert not name or is_defined(path, name), f"{path}:{name}"


def test_every_benchmark_in_the_documents_exists() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    modules = set(re.findall(r"python -m (benchmarks\.\w+|tests\.\w+)", text))
    assert len(modules) > 5
    assert [one for one in modules if find_spec(one) is None] == []
    nodes = ast.walk(ast.parse((ROOT / "benchmarks" / "__main__.py").read_text()))
    values = {one.value for one in nodes if isinstance(one, ast.Constant)}
    listed = {value for value in values if isinstance(value, str)}
    shown = re.findall(r"python -m benchmarks((?: [a-z_]+)+)", text)
    assert len(shown) > 4
    assert {name for names in shown for name in names.split()} <= listed | {"prints", "draws"}


def is_defined(path: str, name: str) -> bool:
    """Whether a module defines a function, constant, ``Class`` or ``Class.method``."""
    names, _, method = name.partition(".")
    for node in ast.parse((ROOT / path).read_text()).body:
        targets = [*getattr(node, "targets", ()), getattr(node, "target", None)]
        if any(getattr(target, "id", "") == names for target in targets):
            return True
        if getattr(node, "name", "") == names:
            return not method or any(
                getattr(inner, "name", "") == method for inner in ast.iter_child_nodes(node)
            )
    return False


@pytest.mark.parametrize("heading", ["Watching a clip", "Answering a question"])
def test_a_diagram_names_functions_that_can_be_stepped_through(heading: str) -> None:
    """A message of a sequence diagram is a function of the module that receives it."""
    below = ARCHITECTURE.split(f"## {heading}\n")[1]
    diagram = re.findall(r"```mermaid\nsequenceDiagram\n(.*?)```", below, re.DOTALL)[0]
    modules = dict(re.findall(r"participant (\w+) as (\S+)", diagram))
    messages = re.findall(r"(\w+)-+>>(\w+): (\S+)$", diagram, re.MULTILINE)
    assert len(messages) >= 12
    assert {end for caller, called, _ in messages for end in (caller, called)} == set(modules)
    for _, called, name in messages:
        assert is_defined(modules[called], name), f"{modules[called]}:{name}"


def test_the_architecture_has_the_packages_in_the_order_of_the_layers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = project["tool"]["importlinter"]["contracts"]
    layers = [re.split(r" [:|] ", layer) for layer in contract["layers"]]
    table = re.findall(r"^\| ((?:`\w+/`(?:, )?)+) \|", ARCHITECTURE, re.MULTILINE)
    assert [name.strip("`/") for name in table] == [name for layer in layers for name in layer]
    (chart,) = re.findall(r"flowchart TD\n(.*?)```", ARCHITECTURE, re.DOTALL)
    boxes = re.sub(r'\w+\["([^"]*)"\]', r"\1", chart)
    drawn = list(dict.fromkeys(one for line in boxes.splitlines() for one in line.split("-->")))
    shown = [re.findall(r"\w+", one) for one in drawn]
    shown = [box for box in shown if box and box != ["mid"]]
    assert list(map(sorted, dict.fromkeys(map(tuple, shown)))) == list(map(sorted, layers))
