"""A question as it is shown to a language model, with untrusted text made safe; pure."""

from __future__ import annotations

from agent.harness.constrain import letter
from agent.harness.inform import quote_untrusted
from domain.asking import Question
from domain.time import format_clock


def question_block(question: Question) -> str:
    """Return the question with its options by letter, as material, and when it is asked."""
    lines = [f"<question>{quote_untrusted(question.text, 2_000)}</question>"]
    lines += [
        f"<option>{letter(number)}. {quote_untrusted(option, 600)}</option>"
        for number, option in enumerate(question.options)
    ]
    if question.as_of_ms is not None:
        lines.append(f"Asked at {format_clock(question.as_of_ms)} of the video.")
    return "\n".join(lines)
