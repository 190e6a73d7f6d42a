"""Ask a model, by as many attempts as the policy allows. The only place that retries."""

import random
from collections.abc import Callable
from typing import Any, Protocol

import trio

from zutd.agent.meter import Meter
from zutd.agent.ports import Choice
from zutd.frames.blocks import Usage
from zutd.frames.events import RequestStarted, RetryScheduled
from zutd.models.base import Answer, ModelError, Request, Sink
from zutd.models.retry import Retry


class Listener(Sink, Protocol):
    """A sink that remembers what the provider said of the attempt's usage."""

    @property
    def usage(self) -> Usage:
        """What was told last."""
        ...


async def ask(
    choice: Choice,
    request: Request,
    listener: Callable[[], Listener],
    *,
    policy: Retry,
    emit: Callable[[Any], None],
    meter: Meter,
) -> Answer:
    """One answer. Every attempt gets a listener of its own: what a failed one said is not part of the answer.

    Raises ModelError when the policy gives up. Attempts and waits are told of as events; what attempts that came to
    nothing have used goes to the ``meter``, the answer's own usage is left to the caller.
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
            return await _attempt(choice, request, listener(), meter)
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


async def _attempt(choice: Choice, request: Request, listener: Listener, meter: Meter) -> Answer:
    """One attempt; one that breaks off is counted."""
    try:
        return await choice.model.stream(request, listener)
    except trio.Cancelled:
        meter.lost(listener.usage, "aborted")
        raise
    except Exception:
        meter.lost(listener.usage, "failed")
        raise
