"""Ask a model, by as many attempts as the policy allows. The only place that retries."""

import random
from collections.abc import Callable
from typing import Any

import trio

from zutd.agent.ports import Choice
from zutd.frames.events import RequestStarted, RetryScheduled
from zutd.models.base import Answer, ModelError, Request, Sink
from zutd.models.retry import Retry


async def ask(
    choice: Choice, request: Request, sink: Callable[[], Sink], *, policy: Retry, emit: Callable[[Any], None]
) -> Answer:
    """One answer. Every attempt gets a sink of its own: what a failed one said is not part of the answer.

    Raises ModelError when the policy gives up. Attempts and waits are told of as events.
    """
    attempt, waited = 1, 0.0
    while True:
        emit(
            RequestStarted(
                provider=choice.info.provider,
                model=choice.info.id,
                scope="provider",
                attempt=attempt,
                max_attempts=policy.attempts,
            )
        )
        try:
            return await choice.model.stream(request, sink())
        except ModelError as exc:
            delay = policy.decide(attempt=attempt, error=exc, elapsed=waited, rand=random.random())  # noqa: S311 - jitter
            if delay is None:
                raise
            reason = exc.kind.value
        attempt, waited = attempt + 1, waited + delay
        emit(
            RetryScheduled(
                scope="provider",
                attempt=attempt,
                max_attempts=policy.attempts,
                delay_ms=round(delay * 1000),
                reason=reason,
            )
        )
        await trio.sleep(delay)
