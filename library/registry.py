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
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from domain.base import first_problem
from domain.errors import InputError

OF_THE_DOOR = {"confirm", "progress"}
"""Parameters that a door gives: how to ask before something is lost, and where progress is shown.
Without them nothing is asked, and nothing shown."""


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
        empty: what a terminal says of an empty list.
    """

    place: str
    command: str = ""
    route: str = ""
    tool: str = ""
    viewers: bool = False
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
        """The types of its parameters and of its ``return``, with what is said about each."""
        return get_type_hints(self.function, include_extras=True)

    @cached_property
    def _signature(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.function).parameters)

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What it is asked for, by name: not where it acts, and not what the door itself gives."""
        asked = [*self._signature.items()][1:]
        return {name: one for name, one in asked if name not in OF_THE_DOOR}

    @property
    def from_door(self) -> set[str]:
        """Which of ``OF_THE_DOOR`` it takes."""
        return self._signature.keys() & OF_THE_DOOR

    @property
    def acts_with_models(self) -> bool:
        """Whether it acts in a workspace, with models, or in a store alone."""
        return next(iter(self._signature)) == "workspace"

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """A model of its parameters, which checks what every door is given."""
        fields: Any = {
            name: (self.hints[name], ... if one.default is one.empty else one.default)
            for name, one in self.parameters.items()
        }
        # Names and times may look like numbers to a client.
        config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
        return create_model(self.function.__name__, __config__=config, **fields)

    def call(self, where: Any, given: Mapping[str, Any], **from_door: Any) -> Any:
        """Do it.

        Args:
            where: a workspace or a store, as the function's first parameter says.
            given: arguments by name, which are checked.
            from_door: those of ``OF_THE_DOOR`` that this door has.

        Raises:
            InputError: one of them is not what is asked for.
        """
        try:
            checked = self.arguments.model_validate(dict(given))
        except ValidationError as error:
            raise InputError(first_problem(error)) from error
        more = {name: value for name, value in from_door.items() if name in self.from_door}
        return self.function(where, **dict(checked), **more)


ACTS = (
    Act("alerts.add_alert", "alert add"),
    Act("alerts.alerts", "alert list", "GET /alerts"),
    Act("alerts.remove_alert", "alert remove"),
    Act("alerts.alert_hits", "alert hits", "GET /alerts/hits"),
    Act("alerts.try_alert", "alert test"),
    Act("alerts.deliver_alerts", "alert deliver"),
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
)

GUIDES = {
    "alert": """Ask standing questions, which are judged on every new clip.

A clip that answers one is recorded as a hit, and sent to a webhook or a local command.

\b
Examples:
  homer alert add ladder "someone carries a ladder" --video entrance
  homer alert add anna --person Anna --webhook https://example.org/hook
  homer alert add stranger --unknown-face --command "notify-send 'An unknown face'"
  homer alert hits
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
