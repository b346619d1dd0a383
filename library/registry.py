"""The acts of the library: each is one function, from which its command, route and tool are made.

A door asks for an act's parameters, help and result here, and adds nothing to them. A new act is a
function in this package and a line in ``ACTS``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from domain.base import first_problem
from domain.errors import InputError
from library.params import OnCommandLine

OF_THE_DOOR = {"confirm", "progress", "listener", "opener", "opened", "stop"}
"""Parameters that a door gives: how to ask before something is lost, where progress and the steps
of a search are shown, what opens images, an open workspace, what ends a stream. Without them
nothing is asked, shown or ended."""


@dataclass(frozen=True)
class Act:
    """An act by the names that doors know it under; an empty one: it is not behind that door.

    Attributes:
        place: module and name of its function in this package, ``alerts.add_alert``; the name is
            also that of the Python interface, so no two have the same.
        command: of the command line, ``alert add``.
        route: method and path over HTTP, ``GET /alerts``.
        tool: of MCP.
        viewers: whether who may only look and ask may do it.
        limited: whether only some requests may do it at a time.
        empty: what a terminal says of an empty list.
    """

    place: str
    command: str = ""
    route: str = ""
    tool: str = ""
    viewers: bool = False
    limited: bool = False
    empty: str = ""

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Its function, which is imported when it is first needed."""
        module, _, name = self.place.partition(".")
        found: Callable[..., Any] = getattr(import_module(f"library.{module}"), name)
        return found

    @property
    def help(self) -> str:
        """What it does: its docstring up to the errors that it raises."""
        return (inspect.getdoc(self.function) or "").partition("\n\nRaises:")[0]

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The types of what it is asked for and of its ``return``, with what is said about each."""
        left_out = {self.where, *OF_THE_DOOR}
        # Types of what is left out may be imported for type checkers only.
        told = {k: v for k, v in self.function.__annotations__.items() if k not in left_out}
        names: dict[str, Any] = self.function.__globals__
        return get_type_hints(SimpleNamespace(__annotations__=told), names, include_extras=True)

    @cached_property
    def _signature(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.function).parameters)

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What it is asked for, by name: not where it acts, and not what the door itself gives."""
        # The first says where it acts.
        asked = [*self._signature.items()][1:]
        return {name: one for name, one in asked if name not in OF_THE_DOOR}

    @property
    def from_door(self) -> set[str]:
        """Which of ``OF_THE_DOOR`` it takes."""
        return self._signature.keys() & OF_THE_DOOR

    @property
    def where(self) -> str:
        """Where it acts: in a ``workspace``, with models, a ``store``, or a ``home``."""
        return next(iter(self._signature))

    @property
    def remote(self) -> dict[str, inspect.Parameter]:
        """What it is asked for from elsewhere: nothing that names a thing of this machine."""
        return {name: one for name, one in self.parameters.items() if not self.looks(name).only}

    def looks(self, name: str) -> OnCommandLine:
        """Return how a parameter is written on a command line."""
        notes = getattr(self.hints[name], "__metadata__", ())
        return next((one for one in notes if isinstance(one, OnCommandLine)), OnCommandLine())

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """A model of its parameters, which checks what a door is given."""
        return self._model(self.parameters)

    @cached_property
    def remote_arguments(self) -> type[BaseModel]:
        """A model of the parameters that it has from elsewhere."""
        return self._model(self.remote)

    def _model(self, parameters: Mapping[str, inspect.Parameter]) -> type[BaseModel]:
        fields: Any = {
            name: (self.hints[name], ... if one.default is one.empty else one.default)
            for name, one in parameters.items()
        }
        # Names and times may look like numbers to a client.
        config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
        return create_model(self.function.__name__, __config__=config, **fields)

    def call(
        self, where: Any, given: Mapping[str, Any], *, remote: bool = False, **from_door: Any
    ) -> Any:
        """Do it.

        Args:
            where: a workspace, a store or a home, as the function's first parameter says.
            given: arguments by name, which are checked.
            remote: whether they come from elsewhere than this machine.
            from_door: those of ``OF_THE_DOOR`` that this door has.

        Raises:
            InputError: one of them is not what is asked for.
        """
        try:
            model = self.remote_arguments if remote else self.arguments
            checked = model.model_validate(dict(given))
        except ValidationError as error:
            raise InputError(first_problem(error)) from error
        # A door has the same for all acts; each is given what it takes.
        more = {name: value for name, value in from_door.items() if name in self.from_door}
        return self.function(where, **dict(checked), **more)


ACTS = (
    Act("alerts.add_alert", "alert add"),
    Act(
        "alerts.alerts",
        "alert list",
        "GET /alerts",
        empty="there are no alerts yet; homer alert add --help says how",
    ),
    Act("alerts.remove_alert", "alert remove"),
    Act("alerts.alert_hits", "alert hits", "GET /alerts/hits", empty="no clip answered it yet"),
    Act("alerts.try_alert", "alert test", empty="none of these clips answers it"),
    Act("alerts.deliver_alerts", "alert deliver"),
    # People
    Act(
        "people.people",
        "people list",
        empty="nobody was recognised in it yet, or is known by name",
    ),
    Act("people.people_of_video", route="GET /videos/{video}/people", tool="people", viewers=True),
    Act("people.people_of_library", route="GET /people", tool="library_people", viewers=True),
    Act("people.person_of_library"),
    Act("people.rename_person", "people rename", "POST /people/rename"),
    Act("people.merge_people", "people merge", "POST /people/merge"),
    Act("people.split_person", "people split", "POST /people/split"),
    Act(
        "people.likely_same_people",
        "people alike",
        "GET /people/likely",
        viewers=True,
        empty="no likely pairs",
    ),
    Act("people.join_sure_people", "people join-sure", empty="no sure pairs"),
    Act("people.keep_people_apart", "people apart", "POST /people/apart"),
    Act("people.forget_person", "people forget", "POST /people/forget"),
    Act("people.undo_people", "people undo", "POST /people/undo"),
    Act(
        "people.people_history",
        "people history",
        empty="nothing was corrected yet: homer people --help says how",
    ),
    # Searching
    Act("search.search", "search", "GET /search", "search", viewers=True, limited=True),
    Act("retrievers.as_retriever"),
    Act("retrievers.as_llama_index_retriever"),
    Act("retrievers.as_tools"),
    Act("search.tools", "tools", "GET /tools", viewers=True),
    Act("search.use_tool", "tool", "POST /tools/{name}", viewers=True, limited=True),
    # Questions
    Act("asking.ask", "ask"),
    Act("asking.ask_stream"),
    Act("asking.aask_stream"),
    Act("asking.resume", "resume"),
    Act("asking.fork", "fork"),
    Act("asking.compare", "compare"),
    Act(
        "trajectories.trajectories",
        "trajectory list",
        "GET /questions",
        viewers=True,
        empty='nothing has been asked yet: homer ask "..." --video VIDEO',
    ),
    Act("trajectories.trajectory", "trajectory show", "GET /questions/{id}", viewers=True),
    Act(
        "trajectories.trajectory_events",
        "trajectory events",
        "GET /questions/{id}/events",
        viewers=True,
    ),
    Act("trajectories.trajectory_round", "trajectory round"),
    Act("trajectories.trajectory_usage", "trajectory usage"),
    Act("answering.replay", "replay"),
    Act("trajectories.diff", "diff"),
    # Videos and what is in memory of them
    Act("ingesting.ingest", "ingest", empty="there is no video or audio file in there"),
    Act("ingesting.watch", "watch"),
    Act("watching.retry", "retry"),
    Act("watching.import_video", "import"),
    Act("videos.all_videos", "videos"),
    Act("videos.videos", route="GET /videos", tool="videos", viewers=True),
    Act("videos.video", route="GET /videos/{video}", viewers=True),
    Act("memory.show_video", "show"),
    Act("memory.clips", route="GET /videos/{video}/clips", viewers=True),
    Act("memory.events", route="GET /videos/{video}/events", viewers=True),
    Act("moments.show_moment", "", "GET /videos/{video}/memory", "show_moment", viewers=True),
    Act("outlines.outline", "outline", "GET /videos/{video}/outline", "outline", viewers=True),
    Act("memory.dump_lines", "dump"),
    Act("videos.check_video", "check"),
    Act("removal.export_video", "export"),
    Act("removal.cut_clip", "clip"),
    Act("removal.delete_video", "delete"),
    Act("removal.delete_video_by_id", route="DELETE /videos/{video}"),
    Act("removal.retain", "retain"),
    # Skills
    Act(
        "skills.skills",
        "skills list",
        empty="there are no skills yet; 'homer skills import FILE' puts some in",
    ),
    Act("skills.skill", "skills show"),
    Act("skills.add_skills", "skills import", empty="they are in the library as they are"),
    Act("skills.export_skills", "skills export"),
    Act("skills.ban_skill", "skills ban"),
    Act("skills.unban_skill", "skills unban"),
    Act("skills.judge_answer", "skills judge"),
    Act("skills.learn_skills", "skills learn", empty="learned from 0 answers"),
    # Rights
    Act("rights.give_right", "rights give"),
    Act("rights.take_right", "rights take"),
    Act("rights.change_group", "rights group"),
    Act("rights.rights", "rights list"),
    Act("rights.rights_of", "rights show"),
    Act("rights.rights_on", "rights on"),
    Act("rights.rights_off", "rights off"),
    # Links
    Act("sharing.share_answer", "share answer"),
    Act("sharing.share_moment", "share moment"),
    Act("sharing.shared_links", "share list", empty="nothing is shared: homer share answer ID"),
    Act("sharing.revoke_link", "share revoke"),
    # Schedules
    Act("schedules.schedules", "schedule list"),
    Act("schedules.schedule_kinds", "schedule kinds"),
    Act("schedules.schedule_pool", "schedule pool"),
    Act("schedules.set_schedule", "schedule set"),
    Act("schedules.schedule", "schedule show"),
    Act("schedules.pause_schedule", "schedule pause"),
    Act("schedules.resume_schedule", "schedule resume"),
    Act("schedules.run_schedule", "schedule run"),
    Act("schedules.remove_schedule", "schedule remove"),
    # Upkeep
    Act("upkeep.audit", "audit", empty="nothing of that kind is on record"),
    Act("upkeep.recap", "recap"),
    Act("upkeep.doctor", "doctor"),
    Act("upkeep.backup", "backup"),
    Act("upkeep.restore", "restore"),
    Act("upkeep.upgrade_database", "db upgrade"),
    Act("upkeep.build_index", "db index"),
    Act("upkeep.models", "models list"),
    Act("upkeep.pull_models", "models pull"),
    # What is made of what was watched
    Act("strategies.strategies", "strategies", "GET /strategies", viewers=True),
    Act("builds.build", "build"),
    Act("builds.reembed", "reembed"),
    Act("builds.export_training", "train export"),
    # Evaluations
    Act("evaluating.evaluate", "eval run"),
    Act("evaluating.evaluate_clips", "eval local"),
    Act("evaluating.evaluate_week", "eval egolife"),
    Act("evaluating.evaluate_first", "eval first"),
    Act("evaluating.evaluate_all", "eval all"),
    Act(
        "evaluations.evaluation_runs",
        "eval runs",
        empty="there are no runs yet; 'homer eval run DATASET FOLDER' makes one",
    ),
    Act("evaluations.evaluation_report", "eval report"),
    Act("evaluations.compare_evaluations", "eval compare"),
    Act("evaluations.calibrate", "eval calibrate"),
    Act("evaluations.data_sets", "eval data"),
    Act("evaluations.compare_captions", "eval captions"),
)


def act_of(place: str) -> Act:
    return next(act for act in ACTS if act.place == place)


GUIDES = {
    "trajectory": """Show the rounds that led to an answer, or list the latest answers.

'homer trajectory' lists them, 'homer trajectory 3f2a' shows one, by the beginning of its id.

\b
Examples:
  homer trajectory
  homer trajectory 3f2a
  homer trajectory usage 3f2a
  homer trajectory round 3f2a 2 --json > round.json
""",
    "alert": """Ask standing questions, which are judged on every new clip.

A clip that answers one is recorded as a hit, and sent to a webhook or a local command.

\b
Examples:
  homer alert add ladder "someone carries a ladder" --video entrance
  homer alert add anna --person Anna --webhook https://example.org/hook
  homer alert add stranger --unknown-face --command "notify-send 'An unknown face'"
  homer alert hits
""",
    "skills": """List, add and ban skills: short advice on how to search for one kind of question.

A question gets the skills whose description and triggers are similar to it. Positive skills apply
from the start, cautionary ones once a search goes badly. 'homer trajectory ID' shows the skills of
a question.

\b
Examples:
  homer skills
  homer skills show order-of-events
  homer skills import mine.toml
  homer skills ban order-of-events
  homer skills export --out skills.json
""",
    "db": """Upgrade the tables of a database, and build its search index.
""",
    "models": """List the model files of a profile, with state, size and licence.

\b
Examples:
  homer models
  homer models pull
  homer models --profile openai
""",
    "train": """Export judged answers as training data for a language model.

The export has the recorded runs of a strategy with their rewards, and the prompts, rewards and
settings for TRL's GRPO. The training itself is started from Python: docs/training.md.

\b
Examples:
  homer train export runs --strategy NAME
""",
    "rights": """Say who may see which videos.

Users are named by the e-mail address with which they sign in, API keys as key:LABEL. Once rights
are enforced, they see only what they or their groups are given, and may only look and ask, in the
app, over HTTP and over MCP. This terminal, the password of the app and a server without keys belong
to the operator, who sees everything.

\b
Examples:
  homer rights give ana@example.org --video talk
  homer rights group editors ana@example.org
  homer rights give editors --group --folder /media/interviews
  homer rights give boss@example.org --everything
  homer rights on
  homer rights show ana@example.org
""",
    "share": """Share one answer or moment by a link that expires.

Whoever has the link and can reach the app sees the page, without signing in.

\b
Examples:
  homer share answer 3f2a
  homer share moment talk 12:30 --days 30
  homer share list
  homer share revoke 9c0d5e7a1b2f4a68
""",
    "schedule": """List and change the jobs that run on a schedule while 'homer up' runs.

Only one is on by default: a nightly check of the memory. A schedule is a Prefect deployment, which
can also be paused and resumed in the app or on Prefect's pages.

\b
Examples:
  homer schedule
  homer schedule set watch folder=~/Videos
  homer schedule pause watch
""",
    "people": """List the people of the library or a video, and correct who is who.

'homer people' lists the people of the library: those joined across videos, then others with a name.
A PERSON is a number, a tag (face_3, voice_1) or a name, as 'homer people VIDEO' lists them. A
correction takes effect at once in answers and searches, and also applies to clips that are watched
later. 'homer people undo VIDEO' undoes the latest one.

\b
Examples:
  homer people talk
  homer people rename talk 3 "Ada Lovelace"
  homer people merge talk voice_1 face_3
  homer people split talk Ada voice_2 --name Ruth
  homer people
  homer people merge talk Ada 5 --of interview
""",
}
"""What is said of a group of commands, ``alert ...``."""
