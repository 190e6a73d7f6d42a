"""What a child's environment holds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.processes.environment import NEVER, child_environment, is_secret

SECRETS = (
    "ANTHROPIC_API_KEY",
    "openai_api_key",
    "GITHUB_TOKEN",
    "HF_TOKEN",
    "TOKEN",
    "CLIENT_SECRET_VALUE",
    "DJANGO_SECRET_KEY",
    "PGPASSWORD",
    "DB_PASSWORD_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "AWS_PROFILE",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "ZUTD_RPC_TOKEN",
    "ZUTCORE_RPC_TOKEN",
    "Zutd_Rpc_Token",
)
HARMLESS = (
    "PATH",
    "HOME",
    "LANG",
    "SSH_AUTH_SOCK",
    "VIRTUAL_ENV",
    "KEYBOARD",
    "TOKENIZERS_PARALLELISM",
    "MONKEY",
    "PWD",
)


@pytest.mark.parametrize("name", SECRETS)
def test_a_name_that_looks_like_a_credential_is_left_out(name: str) -> None:
    """Credentials of any spelling stay with the host."""
    assert child_environment({name: "x", "PATH": "/bin"}) == {"PATH": "/bin"}


@pytest.mark.parametrize("name", HARMLESS)
def test_other_names_pass(name: str) -> None:
    """A program still finds its paths, its locale and its agent socket."""
    assert child_environment({name: "x"}) == {name: "x"}


def test_a_name_that_is_handed_over_comes_back() -> None:
    """A manifest gets the secret that it names, and no other."""
    host = {"GITHUB_TOKEN": "a", "OPENAI_API_KEY": "b"}
    assert child_environment(host, hand_over=["GITHUB_TOKEN", "ABSENT_TOKEN"]) == {"GITHUB_TOKEN": "a"}


@pytest.mark.parametrize("name", sorted(NEVER))
def test_the_daemons_own_token_is_never_handed_over(name: str) -> None:
    """Nobody may ask for the right to command the daemon."""
    assert child_environment({name: "x"}, hand_over=[name]) == {}


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(min_size=1), st.text()), st.lists(st.text(min_size=1)))
def test_a_child_gets_a_part_of_the_host_and_no_unasked_secret(host: dict[str, str], names: list[str]) -> None:
    """For any environment: nothing is made up, nothing changed, and secrets only on request."""
    given_away = child_environment(host, hand_over=names)
    assert given_away.items() <= host.items()
    assert not [name for name in given_away if is_secret(name) and name not in names]
