"""The HOMER machine: plan, then rounds of scheduling, acting, retrieving and assessing."""

from __future__ import annotations

from agent.harness.constrain import check
from agent.run_context import RunContext
from agent.state import State, ledger_of, plain
from domain.asking import Action
from domain.ledger import begin_attempt, next_subtask
from domain.settings import AskSettings
from graphs.machine import Machine
from nodes.act import act, bounds_of, force, guard
from nodes.assess import assess, record
from nodes.finish import answer, finish, synthesize
from nodes.plan import plan, progress, replan, route, schedule
from nodes.retrieve import bind, retrieve


def complaint(action: Action, start: State, context: RunContext) -> str:
    """Return why a fork that begins from ``start`` cannot take this action; "" if it can."""
    bounds = bounds_of(as_opened(start, context.settings), context)
    return check(action, bounds, context.settings).complaint


def as_opened(start: State, settings: AskSettings) -> State:
    """Return the state of a fork's first act: after scheduling if the plan was changed."""
    if start["next"] != "schedule":
        return start
    ledger = ledger_of(start)
    task = next_subtask(ledger, settings)
    if task is None:
        return start
    opened = plain(begin_attempt(ledger, task.id))
    return {**start, "ledger": opened, "current": task.id, "round": start["round"] + 1}


HOMER = Machine(
    steps={
        "route": (route, ("plan",)),
        "plan": (plan, ("progress", "synthesize")),
        "progress": (progress, ("schedule", "replan", "synthesize")),
        "replan": (replan, ("schedule", "synthesize")),
        "schedule": (schedule, ("act", "synthesize")),
        "act": (act, ("guard", "synthesize")),
        "guard": (guard, ("act", "retrieve", "answer", "record")),
        "retrieve": (retrieve, ("bind", "record")),
        "bind": (bind, ("assess",)),
        "assess": (assess, ("record", "synthesize")),
        "record": (record, ("force", "progress")),
        "force": (force, ("progress",)),
        "answer": (answer, ("finish", "record")),
        "synthesize": (synthesize, ("finish",)),
        "finish": (finish, ("end",)),
    },
    start="route",
    entries=("route", "plan", "schedule", "act"),
    round_step="act",  # The round's subtask is chosen by then.
    boundaries=frozenset({"plan", "replan", "act", "retrieve", "assess", "synthesize", "finish"}),
    steps_a_round=9,
    complaint=complaint,
)
