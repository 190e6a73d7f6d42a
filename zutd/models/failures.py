"""What a provider's refusal means: statuses, error codes and texts to :class:`ModelError`.

Everything here is a table or reads one. The order of :func:`classify` is the rule: money first (a 429 for an empty
account is not worth waiting for), then the context window (but never for a 429, whose texts speak of tokens, too),
then the status, then the provider's own code, and only then words. The message shown is the provider's own sentence,
bounded, on one line, with anything that looks like a key struck out; a body that is no JSON is never shown.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from zutd.models.base import ErrorKind, ModelError

BODY_LIMIT = 64 * 1024
MESSAGE_LIMIT = 600

STATUSES = {
    401: ErrorKind.AUTH,
    402: ErrorKind.QUOTA,
    403: ErrorKind.AUTH,
    408: ErrorKind.TIMEOUT,
    413: ErrorKind.CONTEXT,
    425: ErrorKind.OVERLOADED,
    429: ErrorKind.RATE_LIMIT,
    498: ErrorKind.OVERLOADED,
    503: ErrorKind.OVERLOADED,
    529: ErrorKind.OVERLOADED,
}

CODES = {
    "api_error": ErrorKind.SERVER,
    "authentication_error": ErrorKind.AUTH,
    "billing_error": ErrorKind.QUOTA,
    "context_length_exceeded": ErrorKind.CONTEXT,
    "exceed_context_size_error": ErrorKind.CONTEXT,
    "insufficient_quota": ErrorKind.QUOTA,
    "invalid_api_key": ErrorKind.AUTH,
    "invalid_request_error": ErrorKind.REQUEST,
    "model_context_window_exceeded": ErrorKind.CONTEXT,
    "not_found_error": ErrorKind.REQUEST,
    "overloaded_error": ErrorKind.OVERLOADED,
    "permission_error": ErrorKind.AUTH,
    "rate_limit_error": ErrorKind.RATE_LIMIT,
    "rate_limit_exceeded": ErrorKind.RATE_LIMIT,
    "request_too_large": ErrorKind.CONTEXT,
    "resource_exhausted": ErrorKind.RATE_LIMIT,
    "server_error": ErrorKind.SERVER,
    "timeout_error": ErrorKind.TIMEOUT,
    "unavailable": ErrorKind.OVERLOADED,
}

_QUOTA = re.compile(
    r"insufficient[_ ](quota|balance|funds|credits)|exceeded your current quota|quota[_ ]exceeded|out of budget"
    r"|credit balance is too low|usage limit|available balance|billing|payment required|spending limit|out of credits",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"prompt is too long|input is too long|exceeds the context window|exceed context limit"
    r"|exceeds? the model'?s context"
    r"|context window exceeded|context window exceeds|maximum context length|context[_ ]length[_ ]exceeded"
    r"|(input|prompt).{0,80}exceeds the maximum (number of tokens|allowed)|input token count.{0,80}exceeds the maximum"
    r"|maximum prompt length is \d|reduce the length of (the|your) (messages|prompt|input)|exceeds the limit of \d+"
    r"|exceeds the available context size|available context size|greater than the context length"
    r"|exceeded model token limit|too large for model with \d+|model_context_window_exceeded|exceeds max(imum)? length"
    r"|payload too large|request entity too large|request_too_large|too many tokens|token limit exceeded"
    r"|context size has been exceeded|larger than the model'?s context|prompt too long",
    re.IGNORECASE,
)
_NOT_OVERFLOW = re.compile(r"rate limit|too many requests|throttl|per minute|per day", re.IGNORECASE)
_WORDS = (
    (re.compile(r"overloaded|at capacity|service unavailable", re.IGNORECASE), ErrorKind.OVERLOADED),
    (re.compile(r"rate limit|too many requests|throttl", re.IGNORECASE), ErrorKind.RATE_LIMIT),
    (re.compile(r"unauthori[sz]ed|authentication", re.IGNORECASE), ErrorKind.AUTH),
)
_BAD_KEY = re.compile(r"api key (is )?(not valid|invalid|expired|missing)|(invalid|incorrect) api key", re.IGNORECASE)
_NO_OVERFLOW_STATUS = frozenset({401, 402, 403, 404, 429, 503, 529})
_EMPTY_MEANS_OVERFLOW = frozenset({"cerebras"})

_KEYS = re.compile(r"\b(sk|pk|rk|gsk|xai|key|ghp|r8|hf|AIza)[-_]?[A-Za-z0-9_\-]{16,}|(?<=[Bb]earer )\S+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")

HINTS = {
    401: "check the API key",
    403: "check the API key and what it may use",
    404: "check the model's name and the base URL",
    405: "check the base URL",
}


def classify(status: int, code: str, text: str) -> ErrorKind:
    """Say what kind of failure this is. ``status`` 0 means that it came inside a stream."""
    if status != 401 and (_QUOTA.search(text) or CODES.get(code) is ErrorKind.QUOTA):
        return ErrorKind.QUOTA
    if status in {0, 400} and _BAD_KEY.search(text):
        return ErrorKind.AUTH
    if status not in _NO_OVERFLOW_STATUS and _speaks_of_overflow(code, text):
        return ErrorKind.CONTEXT
    return _by_status(status, code) or next((kind for words, kind in _WORDS if words.search(text)), ErrorKind.SERVER)


def _by_status(status: int, code: str) -> ErrorKind | None:
    if status >= 500:
        return STATUSES.get(status, ErrorKind.SERVER)
    kind = STATUSES.get(status) or CODES.get(code)
    return kind or (ErrorKind.REQUEST if status >= 300 else None)


def _speaks_of_overflow(code: str, text: str) -> bool:
    if CODES.get(code) is ErrorKind.CONTEXT:
        return True
    return bool(_OVERFLOW.search(text)) and not _NOT_OVERFLOW.search(text)


def from_response(
    provider: str, status: int, headers: Mapping[str, str], body: bytes, *, now: float, secret: str = ""
) -> ModelError:
    """Make the error of an answer that is not 200. ``now`` is Unix time, ``secret`` the key that was sent."""
    payload = _json(body)
    code, said = _code_and_text(payload)
    delay = retry_after(headers, now)
    if delay is None:
        delay = _delay_in(payload)
    kind = classify(status, code, said)
    if not body.strip() and status == 400 and provider in _EMPTY_MEANS_OVERFLOW:
        kind = ErrorKind.CONTEXT
    if kind is ErrorKind.QUOTA and status == 429 and delay is not None and CODES.get(code) is not ErrorKind.QUOTA:
        kind = ErrorKind.RATE_LIMIT  # a quota per minute: the server says itself that waiting helps
    shown = clean(said, secret) or "no explanation given"
    hint = f" ({HINTS[status]})" if status in HINTS else ""
    return ModelError(kind, f"{provider} answered {status}: {shown}{hint}", retry_after=delay, status=status)


def from_payload(provider: str, payload: Any, *, secret: str = "") -> ModelError:
    """Make the error of an error object that came inside a stream which had begun with 200."""
    code, said = _code_and_text(payload)
    inner = payload.get("error", payload) if isinstance(payload, dict) else None
    status = inner.get("code") if isinstance(inner, dict) else 0
    if not isinstance(status, int) or not 300 <= status < 600:
        status = 0
    kind = classify(status, code, said)
    shown = clean(said, secret) or code or "no explanation given"
    return ModelError(kind, f"{provider} broke off: {shown}", retry_after=_delay_in(payload), status=status)


def clean(text: str, secret: str = "") -> str:
    """Make a provider's text fit to be shown: one line, bounded, without keys."""
    if secret:
        text = text.replace(secret, "***")
    text = _KEYS.sub("***", _CONTROL.sub(" ", text)).strip()
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Read how many seconds the server asks to wait; header names are lower case. None if it does not say."""
    if (ms := _number(headers.get("retry-after-ms"))) is not None:
        return ms / 1000
    value = headers.get("retry-after", "").strip()
    if (seconds := _number(value)) is not None:
        return seconds
    return _until(value, now) if value else None


def _number(text: str | None) -> float | None:
    if not text or not re.fullmatch(r"\s*\d{1,9}(\.\d{1,9})?\s*", text):
        return None
    return float(text)


def _until(date: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - now)
    except (ValueError, OverflowError, TypeError):
        return None


def _delay_in(payload: Any) -> float | None:
    """Read the ``retryDelay`` that one provider puts into the body (``"34s"``)."""
    for found in _objects(payload):
        delay = found.get("retryDelay")
        if isinstance(delay, str) and delay.endswith("s"):
            return _number(delay[:-1])
    return None


def _objects(payload: Any, depth: int = 6) -> Iterator[dict[str, Any]]:
    if depth and isinstance(payload, list):
        for item in payload[:20]:
            yield from _objects(item, depth - 1)
    elif depth and isinstance(payload, dict):
        yield payload
        for item in list(payload.values())[:50]:
            yield from _objects(item, depth - 1)


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _code_and_text(payload: Any, depth: int = 4) -> tuple[str, str]:
    """Find the error's code (lower case) and sentence in the shapes that providers use."""
    if isinstance(payload, list):
        payload = payload[0] if payload else None
    if isinstance(payload, str):
        return "", payload
    if not isinstance(payload, dict):
        return "", ""
    inner = payload.get("error", payload.get("errors"))
    if inner is not None and depth:
        code, text = _code_and_text(inner, depth - 1)
        return code or _code(payload), text or _sentence(payload)
    return _code(payload), _sentence(payload)


def _code(error: dict[str, Any]) -> str:
    """Take the first name that the tables know, else the first name at all."""
    names = [str(error[key]).lower() for key in ("code", "type", "status") if isinstance(error.get(key), str)]
    return next((name for name in names if name in CODES), names[0] if names else "")


def _sentence(error: dict[str, Any]) -> str:
    text = next((error[key] for key in ("message", "detail", "msg") if error.get(key)), "")
    if isinstance(text, list):
        text = "; ".join(_sentence(item) if isinstance(item, dict) else str(item) for item in text[:5])
    upstream = _upstream(error.get("metadata"))
    return f"{text}: {upstream}" if upstream else str(text)


def _upstream(metadata: Any) -> str:
    """Read what a gateway's own provider said; gateways put its body into ``metadata.raw``."""
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    payload = _json(raw.encode("utf-8", "replace")) if isinstance(raw, str) else None
    return _code_and_text(payload)[1]


def from_unstreamed(provider: str, content_type: str, body: bytes, *, secret: str = "") -> ModelError:
    """Make the error of a 200 that is a document and no stream."""
    payload = _json(body)
    if isinstance(payload, dict) and payload.get("error"):
        return from_payload(provider, payload, secret=secret)
    text = f"{provider} answered with {clean(content_type)} and not with an event stream (check the base URL)"
    return ModelError(ErrorKind.PROTOCOL, text, status=200)
