"""Calls to the language model in one run: within its budget and deadline, and recorded.

The budget is the tokens and seconds of the run; both have a hard limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from agent.builder import AskOptions, Reply, note_writer
from agent.harness.inform import shortened
from agent.reasoners.port import Unreadable
from agent.recorder import Recorder
from domain.calls import CallRecord
from domain.errors import BudgetExceeded, ModelError, NotFound, ReplayMiss
from domain.settings import IMAGE_TOKENS, AskSettings
from domain.trajectory import ModelCalled, Prompted, TimeUp
from domain.words import marked
from models.chat import Replay, Sink, StructuredChat
from models.messages import Message, request_tokens
from store.queries.trajectories import add_call, trajectory_exists

if TYPE_CHECKING:
    from agent.recorder import Recorder
    from store.database import Store


LEAST_REPLY = 32
"""Tokens: with room for a shorter reply than this, no call is made."""
LEAST_SECONDS = 1.0


OpenChat = Callable[[Sink, Replay], StructuredChat]
"""Opens a chat that reports its calls to a sink and takes recorded ones from a replay."""


class Calls:
    """The model calls of one run; those that its record already has are not made again.

    ``room``: the tokens of a request that the model reads; None: no limit is known.
    """

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        budget: RunBudget,
        open_chat: OpenChat,
        room: int | None = None,
    ) -> None:
        self._store, self._recorder, self._budget, self._room = store, recorder, budget, room
        self._chat = open_chat(self._note, self._recorded_reply)
        self._last: CallRecord | None = None
        self._round, self._purpose = 0, ""

    @property
    def sees(self) -> bool:
        return self._chat.sees

    @property
    def in_process(self) -> bool:
        return self._chat.in_process

    def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        schema: type[Reply],
        *,
        round: int,  # noqa: A002 - the word of the record
        temperature: float = 0.0,
        images: Sequence[bytes] = (),
        labels: Sequence[str] = (),
        last: bool = False,
        for_tool: bool = False,
    ) -> Reply:
        """Ask for a reply in ``schema``; ``last`` may use what is reserved for the final answer.

        ``labels``: a text before each of the images, or none. ``for_tool``: a tool asks.

        Raises:
            Unreadable: the reply does not fit the schema.
            BudgetExceeded: the tokens or the seconds are spent, before or during the call.
            ModelError: the model cannot be reached.
        """
        # A request that the model could not read to its end is shortened; images take half of it.
        if self._room is not None:
            most = self._room // (2 * IMAGE_TOKENS)
            images, labels = images[:most], labels[:most]
            rest = self._room - request_tokens((), schema, len(images), labels)
            messages = shortened(messages, rest)
        tokens_in = request_tokens(messages, schema, len(images), labels)
        reserve = self._budget.largest if for_tool else 0
        tokens_left = self._budget.tokens_left - reserve - tokens_in
        if last and not for_tool:
            exhausted = self._budget.final_answer_exhausted()
        else:
            exhausted = self._budget.gone(for_tool=for_tool)
        if exhausted or tokens_left < LEAST_REPLY:
            raise BudgetExceeded(exhausted or marked("too few tokens are left for another call"))
        self._last, self._round, self._purpose = None, round, purpose
        try:
            reply = self._chat.ask(
                messages,
                schema,
                purpose=purpose,
                temperature=temperature,
                timeout_s=max(LEAST_SECONDS, self._budget.seconds_left),
                images=images,
                labels=labels,
                max_tokens=tokens_left,
                on_text=self._recorder.reply_listener(round, purpose),
            )
        except ReplayMiss:
            raise
        except ModelError as error:
            raise self._classified(error, for_tool=for_tool) from error
        note_writer(self._chat.model)
        return reply

    def _classified(self, error: ModelError, *, for_tool: bool) -> Exception:
        """Turn a model error into spent time, an unreadable reply or an unreachable model."""
        if self._budget.late(for_tool=for_tool):
            return BudgetExceeded(f"time ran out during a call: {error}")
        if self._last is not None and self._last.reply is not None:
            return Unreadable(str(error))
        return error

    def _note(self, call: CallRecord) -> None:
        """Store a call at once, so that it is not paid for twice, and count it."""
        self._store_call(call)
        self._count(call)

    def _store_call(self, call: CallRecord) -> None:
        record_call_of(self._store, self._recorder.trajectory, call)

    def _recorded_reply(self, request: str) -> CallRecord | None:
        """Return the recorded call, counted as if it were made now; None if there is none."""
        prompted = Prompted(round=self._round, purpose=self._purpose, request=request)
        self._recorder.add(prompted)
        call = self._recorder.replay_source.call(request, self._purpose)
        if call is None:
            self._check_not_deleted()
            return None
        self._count(call)
        return call

    def _check_not_deleted(self) -> None:
        """Check that the reply can still be recorded before paying for a call.

        Raises:
            NotFound: the question was deleted meanwhile.
            DatabaseError: the database is gone.
        """
        with self._store.begin() as session:
            if not trajectory_exists(session, self._recorder.trajectory):
                raise NotFound(f"question {self._recorder.trajectory} was deleted meanwhile")

    def _count(self, call: CallRecord) -> None:
        self._last = call
        self._budget.add(call.tokens_in, call.tokens_out)
        self._recorder.add(
            ModelCalled(
                round=self._round,
                purpose=call.purpose,
                model=call.model,
                request=call.request_hash,
                tokens_in=call.tokens_in,
                tokens_out=call.tokens_out,
                cost_usd=call.cost_usd,
                ms=call.ms,
                error=call.error,
            )
        )


def record_call_of(store: Store, trajectory: str, call: CallRecord) -> None:
    with store.begin() as session:
        add_call(session, replace(call, trajectory_id=trajectory))


class ToolCalls:
    """The calls of a tool, as ``agent.builder.AskModel``; a replay repeats them by the record.

    Args:
        calls: those of the run.
        round: the round in which the tool is used.
    """

    def __init__(self, calls: Calls, round: int) -> None:  # noqa: A002 - the word of the record
        self._calls, self._round = calls, round

    @property
    def sees(self) -> bool:
        return self._calls.sees

    def ask(
        self,
        purpose: str,
        messages: Sequence[Message],
        schema: type[Reply],
        **options: Unpack[AskOptions],
    ) -> Reply:
        """Ask for a reply in ``schema``; see ``AskModel``."""
        return self._calls.ask(
            purpose, messages, schema, round=self._round, for_tool=True, **options
        )


# The budget of a run.


class RunBudget:
    """The tokens and seconds of a run, counted on from where an interrupted one stopped.

    ``now`` returns monotonic seconds. ``looks`` counts how often a decision depended on the clock;
    the look at which time is up is recorded, so that the run can be repeated without a clock.
    """

    def __init__(
        self,
        settings: AskSettings,
        tokens: int = 0,
        clock: float = 0.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._now = settings, now
        self._started = now() - clock
        self.tokens = tokens
        self.largest = 0
        self.looks = 0
        self._late = False
        self._recorder: Recorder | None = None

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count the tokens of a model call."""
        self.tokens += tokens_in + tokens_out
        self.largest = max(self.largest, tokens_in + tokens_out)

    def follow(self, recorder: Recorder, looks: int) -> None:
        """Restore from a recorder's events the largest call and whether time is up.

        The recorder is told when time runs out.
        """
        self._recorder, recorder.clock, self.looks = recorder, lambda: self.clock, looks
        for event in recorder.events:
            if isinstance(event, ModelCalled):
                self.largest = max(self.largest, event.tokens_in + event.tokens_out)
            # While it repeats a record, time is up where it was up before.
            self._late = self._late or isinstance(event, TimeUp)

    @property
    def clock(self) -> float:
        """Return the seconds spent."""
        return self._now() - self._started

    @property
    def seconds_left(self) -> float:
        """Return the seconds until the deadline; 0 when it has passed."""
        return max(0.0, self._settings.seconds - self.clock)

    @property
    def tokens_left(self) -> int:
        """Return how many tokens may still be spent."""
        return max(0, self._settings.tokens - self.tokens)

    def gone(self, *, for_tool: bool = False) -> str:
        """Name the budget that is exhausted; "" while both suffice for another call."""
        # A call may take as many tokens as the largest so far, and as many again are reserved for
        # the final answer.
        return self._short_of(2 * self.largest, late=self.late(for_tool=for_tool))

    def final_answer_exhausted(self) -> str:
        """Name the budget that is exhausted for the final answer, which may use the reserve."""
        return self._short_of(self.largest, late=self.late())

    def late(self, *, for_tool: bool = False) -> bool:
        """Check whether the seconds are spent; once they are, it stays so."""
        # A replay has what a tool found from the record: its looks are not counted or recorded.
        if for_tool:
            return self._late or self._is_over()
        self.looks += 1
        if not self._late and self._is_over():
            self._late = True
            if self._recorder is not None:
                self._recorder.add(TimeUp(round=self._recorder.round, look=self.looks))
        return self._late

    def _is_over(self) -> bool:
        ahead = self._recorder.ahead if self._recorder else None
        if ahead is not None:
            return isinstance(ahead, TimeUp) and ahead.look <= self.looks
        return self.seconds_left <= 0

    def _short_of(self, tokens: int, *, late: bool) -> str:
        if late:
            return marked(f"the {self._settings.seconds:g} seconds are spent")
        if self.tokens_left <= 0 or self.tokens_left < tokens:
            return marked(f"the {self._settings.tokens} tokens are spent")
        return ""
