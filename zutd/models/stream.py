"""What the readers of both wires share: bytes to typed events, and how a stream fails.

The fast decoder refuses halves of surrogate pairs, which servers produce that cut text between UTF-16 units.
An event of that kind is decoded by the standard library instead, and from then on the halves are joined again.
"""

import abc
import uuid
from typing import Any, Generic, TypeVar

import msgspec

from zutd.models import failures, shape
from zutd.models.base import ErrorKind, ModelError, Sink
from zutd.models.http import Want
from zutd.models.sse import EventTooLargeError, SseDecoder

E = TypeVar("E", bound=msgspec.Struct)

END_MARK = b"[DONE]"


class StreamReader(abc.ABC, Generic[E]):
    """A wire's state machine. A subclass takes events of type ``record`` and the end mark.

    While ``halves`` is set, the text of deltas has to go through it.
    """

    def __init__(self, record: type[E], provider: str, secret: str, sink: Sink) -> None:
        """``secret`` is struck out of what the server says about errors."""
        self.want = Want.MORE
        self.sink = sink
        self._provider = provider
        self._secret = secret
        self._record = record
        self._decoder = msgspec.json.Decoder(record)
        self._sse = SseDecoder()
        self.halves: shape.Halves | None = None
        self._error: ModelError | None = None

    @abc.abstractmethod
    def take(self, event: E) -> None:
        """Take one event."""

    @abc.abstractmethod
    def ended(self) -> None:
        """The end mark of the chat wire came."""

    def opened(self) -> None:
        """The server accepted the request."""
        self.sink.started()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        decode, take = self._decoder.decode, self.take
        try:
            for _, data in self._sse.feed(chunk):
                try:
                    event = decode(data)
                except msgspec.DecodeError:
                    self._odd(data)
                else:
                    take(event)
                if self.want is Want.STOP or self.want is Want.NOTHING:
                    return
        except EventTooLargeError as exc:
            self.fail(ModelError(ErrorKind.PROTOCOL, f"{self._provider}: {exc}"))

    def fail(self, error: ModelError) -> None:
        """Stop reading; :meth:`check` raises this error. The first one stays."""
        self._error = self._error or error
        self.want = Want.STOP

    def fail_with(self, payload: Any) -> None:
        """Stop reading because of an error object in the stream."""
        self.fail(failures.from_payload(self._provider, payload, secret=self._secret))

    def broken(self, why: str) -> None:
        """Stop reading because the stream is not what the wire promises."""
        self.fail(ModelError(ErrorKind.PROTOCOL, f"{self._provider} sent a stream that makes no sense: {why}"))

    def check(self) -> None:
        """Raise what went wrong. A stream without its end mark went wrong."""
        if self.want is Want.MORE:
            for _, data in self._sse.finish():
                self._odd(data)
        if self._error is not None:
            raise self._error
        if self.want is Want.MORE:
            raise ModelError(ErrorKind.NETWORK, f"{self._provider}: the stream ended without its end marker")

    def _odd(self, data: bytes) -> None:
        """Take data that the fast decoder refuses."""
        if data.strip() == END_MARK:
            self.ended()
            return
        try:
            value = shape.loads(data)
            event = msgspec.convert(value, self._record, strict=False)
        except msgspec.ValidationError as exc:
            self.broken(failures.clean(str(exc)))
        except (ValueError, RecursionError):
            self.broken("it has data that is no JSON")
        else:
            self.halves = self.halves or shape.Halves()
            self.take(event)


def new_id() -> str:
    """Make an id for a call that the server gave none."""
    return f"call_{uuid.uuid4().hex[:20]}"
