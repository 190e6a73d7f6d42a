"""What a provider's refusal means."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.models.base import ErrorKind
from zutd.models.failures import MESSAGE_LIMIT, clean, from_payload, from_response, from_unstreamed, retry_after

K = ErrorKind
NOW = 1_700_000_000.0


def refused(status: int, body: Any = "", provider: str = "p", **headers: str) -> Any:
    """The error of a refusal."""
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    lines = {name.replace("_", "-"): value for name, value in headers.items()}
    return from_response(provider, status, lines, data, now=NOW, secret="sk-secret-0123456789abcdef")


def said(text: str, **more: Any) -> dict[str, Any]:
    """The usual error body."""
    return {"error": {"message": text, **more}}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (307, K.REQUEST),
        (400, K.REQUEST),
        (401, K.AUTH),
        (402, K.QUOTA),
        (403, K.AUTH),
        (404, K.REQUEST),
        (408, K.TIMEOUT),
        (413, K.CONTEXT),
        (418, K.REQUEST),
        (422, K.REQUEST),
        (429, K.RATE_LIMIT),
        (500, K.SERVER),
        (502, K.SERVER),
        (503, K.OVERLOADED),
        (504, K.SERVER),
        (524, K.SERVER),
        (529, K.OVERLOADED),
    ],
)
def test_a_status_alone_has_a_kind(status: int, kind: ErrorKind) -> None:
    """Without a word from the server its status decides."""
    error = refused(status)
    assert error.kind is kind
    assert error.status == status


OVERFLOWS = [
    "prompt is too long: 208310 tokens > 200000 maximum",
    "Input is too long for requested model.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Please reduce the length of the messages or completion.",
    "This endpoint's maximum context length is 128000 tokens. However, you requested about 140000 tokens",
    "prompt token count of 140000 exceeds the limit of 128000",
    "the request exceeds the available context size. try increasing the context size",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "invalid params, context window exceeds limit",
    "Invalid request: Your request exceeded model token limit: 262144",
    "Prompt contains 40000 tokens ... too large for model with 32768 maximum context length",
    "model_context_window_exceeded",
    "context_length_exceeded",
    "payload too large",
    "Request Entity Too Large",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "token limit exceeded",
]


@pytest.mark.parametrize("text", OVERFLOWS)
@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_overflow_is_known_by_its_words(text: str, status: int) -> None:
    """Every provider says it in its own way, and not always with the same status."""
    assert refused(status, said(text)).kind is K.CONTEXT
    assert from_payload("p", said(text)).kind is K.CONTEXT


@pytest.mark.parametrize(
    "text",
    [
        "Rate limit reached: too many tokens per minute, maximum context length notwithstanding",
        "Too many tokens, please wait: throttling",
    ],
)
def test_a_rate_limit_that_speaks_of_tokens_is_no_overflow(text: str) -> None:
    """Compacting does not help against a rate limit."""
    assert refused(429, said(text)).kind is K.RATE_LIMIT
    assert from_payload("p", said(text)).kind is K.RATE_LIMIT


def test_an_empty_refusal_is_an_overflow_of_the_one_provider_that_does_so() -> None:
    """Of others it is just a bad request."""
    assert refused(400, "", provider="cerebras").kind is K.CONTEXT
    assert refused(400, "", provider="other").kind is K.REQUEST


@pytest.mark.parametrize(
    "body",
    [
        said("You exceeded your current quota, please check your plan and billing details.", code="insufficient_quota"),
        said("Your credit balance is too low to access the API."),
        said("monthly usage limit reached"),
        said("x", type="billing_error"),
    ],
)
@pytest.mark.parametrize("status", [400, 403, 429])
def test_no_money_is_no_rate_limit(body: Any, status: int) -> None:
    """Waiting does not fill an account."""
    assert refused(status, body).kind is K.QUOTA


def test_a_quota_per_minute_can_be_waited_for() -> None:
    """Where the server says when to come back, the same words mean a rate limit."""
    body = [{"error": {"code": 429, "message": "You exceeded your current quota", "details": [{"retryDelay": "34s"}]}}]
    error = refused(429, body)
    assert error.kind is K.RATE_LIMIT
    assert error.retry_after == 34


def test_a_wrong_key_may_come_as_a_bad_request() -> None:
    """One provider answers 400 to it."""
    assert refused(400, said("API key not valid. Please pass a valid API key.")).kind is K.AUTH


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (said("plain"), "plain"),
        ({"type": "error", "error": {"type": "x", "message": "typed"}}, "typed"),
        ({"error": "text"}, "text"),
        ({"message": "top"}, "top"),
        ({"detail": "detail"}, "detail"),
        ({"detail": [{"msg": "one"}, {"msg": "two"}]}, "one; two"),
        ([said("in a list")], "in a list"),
        ({"errors": [{"message": "many"}]}, "many"),
        (said("Provider returned error", metadata={"raw": json.dumps(said("inner words"))}), "error: inner words"),
    ],
)
def test_the_providers_own_sentence_is_shown(body: Any, shown: str) -> None:
    """The message is found in every shape that providers use."""
    assert shown in refused(400, body).message


@pytest.mark.parametrize(
    "body", ["<html><h1>Bad gateway: secret internals</h1></html>", "\x00\xff", "null", "[]", "7", "["]
)
def test_a_body_that_explains_nothing_is_not_shown(body: str) -> None:
    """What is no error object does not reach people's eyes."""
    assert refused(502, body).message == "p answered 502: no explanation given"


def test_keys_are_struck_out() -> None:
    """Neither the key that was sent nor anything that looks like one is shown."""
    text = "Incorrect key sk-secret-0123456789abcdef or gsk_0123456789abcdefXYZ in Bearer abc.def"
    assert refused(401, said(text)).message == (
        "p answered 401: Incorrect key *** or *** in Bearer *** (check the API key)"
    )


@given(st.text(max_size=2000))
def test_a_message_is_one_bounded_line(text: str) -> None:
    """No provider can break the line of a log or fill a screen."""
    shown = clean(text)
    assert len(shown) <= MESSAGE_LIMIT
    assert not set(shown) & set("\n\r\x00\x1b\x85\u2028\u2029")


@given(
    st.integers(0, 999),
    st.binary(max_size=300)
    | st.recursive(
        st.none() | st.text() | st.integers(),
        lambda c: (
            st.lists(c, max_size=3)
            | st.dictionaries(
                st.sampled_from(["error", "message", "code", "detail", "metadata", "raw", "x"]), c, max_size=4
            )
        ),
    ).map(lambda v: json.dumps(v).encode()),
)
def test_any_body_makes_an_error(status: int, body: bytes) -> None:
    """A refusal cannot break the one who reads it."""
    error = from_response("p", status, {}, body, now=NOW)
    assert error.message.startswith("p answered")
    assert from_unstreamed("p", "text/html", body).message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates; nonsense counts as nothing."""
    assert retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, K.OVERLOADED),
        ({"error": {"type": "rate_limit_error", "message": "x"}}, K.RATE_LIMIT),
        ({"error": {"type": "api_error", "message": "x"}}, K.SERVER),
        ({"error": {"type": "invalid_request_error", "message": "x"}}, K.REQUEST),
        ({"error": {"type": "authentication_error", "message": "x"}}, K.AUTH),
        ({"error": {"code": 429, "message": "x"}}, K.RATE_LIMIT),
        ({"error": {"code": 502, "message": "Provider returned error"}}, K.SERVER),
        ({"error": "the model is overloaded"}, K.OVERLOADED),
        ({"error": {"message": "price 500 limit"}}, K.SERVER),
        ({"error": None}, K.SERVER),
        (None, K.SERVER),
    ],
)
def test_an_error_inside_a_stream_has_a_kind(payload: Any, kind: ErrorKind) -> None:
    """Codes decide, words only where there is nothing else."""
    assert from_payload("p", payload).kind is kind


def test_a_document_instead_of_a_stream_is_told() -> None:
    """A 200 with a page points at a wrong URL; one with an error object is that error."""
    page = from_unstreamed("p", "text/html", b"<html>")
    assert page.kind is K.PROTOCOL
    assert "text/html" in page.message
    assert "base URL" in page.message
    assert from_unstreamed("p", "application/json", json.dumps(said("overloaded")).encode()).kind is K.OVERLOADED
