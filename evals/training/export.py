"""Training data as a folder that is complete or not there, and the environment to train in.

The environment has a strategy's tools over the view of a question.
"""

from __future__ import annotations

import inspect
import json
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase
from types import FunctionType
from typing import TYPE_CHECKING, Any, Optional

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from agent.strategy import RunNamedTool, Strategy, Tool, ToolUse
from domain.asking import Action, Evidence, Question
from domain.base import Frozen
from domain.errors import InputError
from domain.memories import MemoryView
from domain.rights import Deed
from domain.time import format_clock
from domain.trajectory import Acted, Ended, Event, EvidenceRetrieved
from models.profile import Profile
from store.files import make_private, open_private
from store.queries.learning import judged_records
from store.queries.rights import record_deed
from store.queries.trajectories import events_of, find_trajectory

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from store.database import Store


# Conversations of questions and recorded runs, as chat templates take them.

SYSTEM = Path(__file__).parents[1] / "prompts" / "train.md"
SHOWN = 20
"""Pieces of evidence that a tool's result shows at most."""
LONGEST = 600
"""Characters of a piece of evidence that are shown."""

Message = dict[str, Any]


def prompt_of(question: Question) -> list[Message]:
    lines = [question.text]
    lines += [f"{ascii_uppercase[n]}. {option}" for n, option in enumerate(question.options)]
    if question.as_of_ms is not None:
        lines.append(f"It is asked at {format_clock(question.as_of_ms)} of the video.")
    return [
        {"role": "system", "content": SYSTEM.read_text(encoding="utf-8").strip()},
        {"role": "user", "content": "\n".join(lines)},
    ]


def completion_of(events: Sequence[Event]) -> list[Message]:
    """Return what a recorded run did: calls of tools with their results, then its answer."""
    messages: list[Message] = []
    reason = ""
    for event in events:
        if isinstance(event, Acted):
            reason = event.action.reason if event.action else ""
        elif isinstance(event, EvidenceRetrieved) and event.round > 0:
            name = str(event.mode)
            arguments = {**({"query": event.query} if event.query else {}), **event.arguments}
            call = {"type": "function", "function": {"name": name, "arguments": arguments}}
            messages.append({"role": "assistant", "content": reason, "tool_calls": [call]})
            text = event.refused or found_text(event.evidence, nothing_close=event.nothing_close)
            messages.append({"role": "tool", "name": name, "content": text})
            reason = ""
    answers = [event.answer for event in events if isinstance(event, Ended) and event.answer]
    for answer in answers[-1:]:
        given = f"\\boxed{{{answer.option}}}" if answer.option else answer.text
        messages.append({"role": "assistant", "content": given})
    return messages


def found_text(evidence: Iterable[Evidence], *, nothing_close: bool) -> str:
    """Return what a tool found as text: a line for each piece, best first, with ref and time."""
    pieces = list(evidence)[:SHOWN]
    lines = [
        f"[{one.ref}] {one.span} {' '.join(one.full_text.split())[:LONGEST]}" for one in pieces
    ]
    if not lines:
        return "Nothing was found."
    return "\n".join((["Nothing is close; the nearest:"] if nothing_close else []) + lines)


# The recipe of the training: the paper's constants, and what TRL calls them.


class Recipe(Frozen):
    """Group relative policy optimisation (GRPO) with the constants of the paper.

    ``group`` completions are made of each prompt, and ``batch`` go into one optimiser step. ``kl``
    weighs the divergence from the reference model; 0: there is none. ``right`` is the reward of a
    right final answer; any other has 0.
    """

    group: PositiveInt = 8
    kl: float = Field(default=0.0, ge=0)
    learning_rate: float = Field(default=1e-6, gt=0)
    warmup_steps: int = Field(default=5, ge=0)
    batch: PositiveInt = 64
    right: float = 1.0

    def grpo_arguments(self) -> dict[str, Any]:
        """Return the arguments of TRL's ``GRPOConfig``: the rest is TRL's default."""
        return {
            "num_generations": self.group,
            "beta": self.kl,
            "learning_rate": self.learning_rate,
            "warmup_steps": self.warmup_steps,
            # One group is on the device at a time.
            "per_device_train_batch_size": self.group,
            "gradient_accumulation_steps": self.batch // self.group,
            "loss_type": "grpo",
            # Advantages are normalised by mean and deviation of the group (Shao et al., 2024,
            # section 4.1.2).
            "scale_rewards": "group",
        }


# Examples to train on: prompts with their right answers, and trajectories with their rewards.


@dataclass(frozen=True)
class RecordedExample:
    """The row of a judged trajectory, and that of its prompt, whose ``view`` is JSON.

    ``answer`` in both is the letter of the right option; "" where it is unknown.
    """

    row: dict[str, Any]
    prompt_row: dict[str, Any]
    is_open: bool


def recorded_examples(
    session: Session, strategy: str, recipe: Recipe, limit: int | None = None
) -> Iterator[RecordedExample]:
    """Yield the judged trajectories of a strategy, oldest first, at most ``limit``."""
    for trajectory, right, item in judged_records(session, strategy)[:limit]:
        run = find_trajectory(session, trajectory)
        # The right option is the data set's, else that of an answer judged right.
        letter = str((item or {}).get("answer") or "")
        if not letter and right and run.answer is not None:
            letter = run.answer.option or ""
        if letter not in tuple(ascii_uppercase[: len(run.question.options)]):
            letter = ""
        asked = {"prompt": prompt_of(run.question), "answer": letter}
        row = {
            "prompt": asked["prompt"],
            "completion": completion_of(events_of(session, run.id)),
            "reward": recipe.right if right else 0.0,
            "answer": letter,
            "trajectory": run.id,
            "profile": run.profile,
        }
        view = run.view.model_dump_json()
        yield RecordedExample(row, {**asked, "view": view}, is_open=not run.question.options)


PROMPTS, TRAJECTORIES, MANIFEST = "prompts.jsonl", "trajectories.jsonl", "training.json"
FORMAT = 1


class TrainingManifest(Frozen):
    """What an export holds. ``open_questions``: trajectories whose answer code cannot judge.

    ``strategy`` is whose tools the environment has, with the profile's models. ``grpo`` are the
    arguments of TRL's ``GRPOConfig``.
    """

    format: int = FORMAT
    strategy: str
    profile: str
    trajectories: NonNegativeInt
    right: NonNegativeInt
    prompts: NonNegativeInt
    open_questions: NonNegativeInt
    recipe: Recipe = Recipe()
    grpo: dict[str, Any]


def export_training(
    store: Store, strategy: Strategy, profile: str, folder: Path, limit: int | None = None
) -> TrainingManifest:
    """Write the judged trajectories of a strategy, and the prompts among them, into a new folder.

    Args:
        store: holds the trajectories; what was deleted or forgotten is not in it any more.
        strategy: whose trajectories.
        profile: the models of the environment.
        folder: must not exist, or be an earlier export, which is replaced.
        limit: at most so many trajectories, from the oldest on.

    Raises:
        InputError: nothing is judged, or the folder is something else or cannot be written.
    """
    # Check that nothing but an earlier export would be replaced.
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"{folder} is not a folder: name a new one")
    if folder.is_dir():
        names = {path.name for path in folder.iterdir()}
        if names and (MANIFEST not in names or names - {PROMPTS, TRAJECTORIES, MANIFEST}):
            raise InputError(f"{folder} has other files in it: name a new folder")
    recipe = Recipe()
    with store.begin(snapshot=True) as session:
        examples = list(recorded_examples(session, strategy.name, recipe, limit))
    if not examples:
        raise InputError(
            f"no answer of {strategy.name} was judged yet: 'homer eval run' judges those to a data "
            "set, 'homer skills judge ID right' one of your own"
        )
    rows = [one.prompt_row for one in examples if one.prompt_row["answer"]]
    distinct = {(str(row["prompt"]), row["view"]): row for row in rows}
    prompts = list(distinct.values())
    manifest = TrainingManifest(
        strategy=strategy.name,
        profile=profile,
        trajectories=len(examples),
        right=sum(example.row["reward"] > 0 for example in examples),
        prompts=len(prompts),
        open_questions=sum(example.is_open for example in examples),
        recipe=recipe,
        grpo=recipe.grpo_arguments(),
    )
    files = {
        PROMPTS: _lines(prompts),
        TRAJECTORIES: _lines(example.row for example in examples),
        MANIFEST: manifest.model_dump_json(indent=1) + "\n",
    }
    _write(folder, files)
    with store.begin() as session:
        record_deed(session, Deed.EXPORTED)
    return manifest


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files beside the folder, then put them in its place."""
    whole, mark = folder.absolute(), secrets.token_hex(4)
    fresh, earlier = (whole.with_name(f".{whole.name}-{mark}-{which}") for which in ("new", "old"))
    try:
        make_private(fresh)
        for name, text in files.items():
            with open_private(fresh / name) as file:
                file.write(text)
        if whole.is_dir():
            whole.rename(earlier)
        # Rename the new folder; where that fails, the earlier one is put back.
        try:
            fresh.rename(whole)
        except OSError:
            if earlier.is_dir():
                earlier.rename(whole)
            raise
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(earlier, ignore_errors=True)


def read_manifest(folder: Path) -> TrainingManifest:
    """Read what an export holds.

    Raises:
        InputError: the folder is not an export of this format, or was altered.
    """
    try:
        manifest = TrainingManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except (OSError, ValidationError) as error:
        raise InputError(f"{folder} is no export of 'homer train export'") from error
    if manifest.format != FORMAT:
        raise InputError(f"{folder} is an export of format {manifest.format}: export it anew")
    if odd := sorted(manifest.grpo.keys() - manifest.recipe.grpo_arguments().keys()):
        # Others could have the trainer upload the model, for example.
        raise InputError(f"{folder} sets {odd[0]}, which no export does: give it to the trainer")
    return manifest


def read_prompts(folder: Path) -> list[dict[str, Any]]:
    """Read the prompts of an export.

    Raises:
        InputError: they cannot be read.
    """
    try:
        text = (folder / PROMPTS).read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / PROMPTS} cannot be read: {error}") from error


# The reward of a final answer: whether it is the right option.

_BOX = re.compile(r"\\boxed\{([^{}]{0,200})\}")

Messages = Sequence[Mapping[str, Any]]
"""A conversation, as chat templates take it."""


def boxed_letter(text: str) -> str:
    """Return the letter in the last box of an answer; "" without one."""
    boxes = _BOX.findall(text)
    letter = boxes[-1].strip().strip("().").strip().upper() if boxes else ""
    return letter if re.fullmatch("[A-Z]", letter) else ""


def right_answers(completions: Sequence[Messages], answer: Sequence[str], **_: Any) -> list[float]:
    """Return the reward of each completion: that of a right final answer, else 0.

    A reward function of TRL's ``GRPOTrainer``.

    Args:
        completions: what the model wrote of each prompt, with the results of tools.
        answer: the letter of the right option, for each.
    """
    right = Recipe().right
    rewards = []
    for completion, letter in zip(completions, answer, strict=True):
        # The final answer is the last message, if the model wrote it.
        last = completion[-1] if completion else {}
        written = last.get("role") == "assistant" and not last.get("tool_calls")
        given = boxed_letter(str(last.get("content") or "")) if written else ""
        rewards.append(right if letter and given == letter else 0.0)
    return rewards


# TRL's ``GRPOTrainer`` makes instances of a class, resets each with a row of the data set, and
# offers its public methods as tools. What they do and take, it reads from signatures and
# docstrings, which are made here of the tools' own descriptions and arguments.


_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


class MemoryEnvironment:
    """The memory as one question sees it; tools are added by ``environment_of``."""

    _strategy: Strategy
    _run: RunNamedTool

    def __init__(self) -> None:
        self._view: MemoryView | None = None
        self._seen: frozenset[str] = frozenset()

    def reset(self, view: str, **_: Any) -> None:
        """Begin anew with the view of a question, as JSON."""
        self._view, self._seen = MemoryView.model_validate_json(view), frozenset()


def environment_of(
    strategy: Strategy, profile: Profile, run: RunNamedTool
) -> type[MemoryEnvironment]:
    """Return the class of environments with a strategy's tools.

    Args:
        strategy: whose tools; those that the profile has no models for are not offered.
        profile: the models. Tools ask no language model.
        run: runs tools on the library.
    """
    offered = strategy.tools_for(profile)
    tools = [tool for tool in strategy.switched_on if tool.name in offered]
    body: dict[str, Any] = {tool.name: _method(tool) for tool in tools}
    body |= {"_strategy": strategy, "_run": staticmethod(run)}
    return type(MemoryEnvironment.__name__, (MemoryEnvironment,), body)


def _method(tool: Tool) -> Callable[..., str]:
    """Return the method that uses a tool, with the signature and docstring of its arguments."""

    def use(self: MemoryEnvironment, **arguments: Any) -> str:
        if self._view is None:
            raise ValueError("the environment was not reset")
        given = {name: value for name, value in arguments.items() if value is not None}
        action = Action(kind="search", query=str(given.pop("query", "")), arguments=given)
        use = ToolUse(seen=self._seen, without=self._strategy.without)
        found = self._run(self._strategy, tool, self._view, tool.parse(action), use)
        self._seen |= {one.ref for one in found.evidence}
        return found_text(found.evidence, nothing_close=found.nothing_close)

    method = FunctionType(use.__code__, use.__globals__, tool.name, None, use.__closure__)
    schema = tool.arguments.model_json_schema()
    parameters = [_parameter(name, part, schema) for name, part in schema["properties"].items()]
    ordered = sorted(parameters, key=lambda one: one.default is not inspect.Parameter.empty)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([itself, *ordered], return_annotation=str)
    method.__kwdefaults__ = None
    method.__annotations__ = {one.name: one.annotation for one in ordered} | {"return": str}
    method.__signature__ = signature  # type: ignore[attr-defined]
    # Describe a tool and its arguments in Google's style, which chat templates parse.
    arguments = []
    for name, part in schema["properties"].items():
        text = str(part.get("description") or ("what to look for" if name == "query" else name))
        arguments.append(f"    {name}: {' '.join(text.split())}")
    described = " ".join(tool.description.split())
    listed = "\n".join(arguments)
    method.__doc__ = (
        f"{described}\n\nArgs:\n{listed}\n\nReturns:\n    What was found, with refs and times.\n"
    )
    return method


def _parameter(name: str, part: Mapping[str, Any], schema: Mapping[str, Any]) -> inspect.Parameter:
    """Return the parameter of an argument, given its part of the tool's JSON schema."""
    # The Python type of a part of a JSON schema: its first kind that is not null.
    choices = [one for one in part.get("anyOf", ()) if one.get("type") != "null"]
    chosen = choices[0] if choices else part
    if "$ref" in chosen:
        chosen = schema["$defs"][chosen["$ref"].rsplit("/", 1)[-1]]
    kind = _TYPES.get(str(chosen.get("type", "string")), str)
    required = name in schema.get("required", ())
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=inspect.Parameter.empty if required else None,
        annotation=kind if required else Optional[kind],  # noqa: UP045 - `|` needs a type
    )
