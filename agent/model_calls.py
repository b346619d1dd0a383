"""Calls to the language model in one run: within the budget and deadline, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from agent.budget import RunBudget
from agent.builder import AskOptions, Reply, note_writer
from agent.harness.inform import shortened
from agent.reasoners.port import Unreadable
from agent.recorder import Recorder
from domain.calls import CallRecord
from domain.errors import BudgetExceeded, ModelError, NotFound, ReplayMiss
from domain.settings import IMAGE_TOKENS
from domain.trajectory import ModelCalled, Prompted
from domain.words import marked
from models.chat import Replay, Sink, StructuredChat
from models.messages import Message, request_tokens
from store.queries.trajectories import add_call, trajectory_exists

if TYPE_CHECKING:
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
        """Check whether the model accepts images."""
        return self._chat.sees

    @property
    def in_process(self) -> bool:
        """Check whether the model runs in this process."""
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

        A request that the model could not read to its end is shortened (``agent.harness.inform``),
        and its images take at most half of it.

        ``labels``: a text before each of the images, or none. ``for_tool``: a tool asks; a replay
        takes the tool's result from the record, so its looks at the clock are not counted.

        Raises:
            Unreadable: the reply does not fit the schema.
            BudgetExceeded: the tokens or the seconds are spent, before or during the call.
            ModelError: the model cannot be reached.
        """
        if self._room is not None:
            most = self._room // (2 * IMAGE_TOKENS)
            images, labels = images[:most], labels[:most]
            rest = self._room - request_tokens((), schema, len(images), labels)
            messages = shortened(messages, rest)
        tokens_in = request_tokens(messages, schema, len(images), labels)
        reserve = self._budget.largest if for_tool else 0
        tokens_left = self._budget.tokens_left - reserve - tokens_in
        if for_tool:
            exhausted = self._budget.gone_for_tool()
        else:
            exhausted = self._budget.final_answer_exhausted() if last else self._budget.gone()
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
        if self._budget.late_for_tool() if for_tool else self._budget.late():
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
        """Check whether the model accepts images."""
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
