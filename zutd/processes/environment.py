"""What a child process may know: the host's environment without secrets.

The rules are a table of what a secret's name looks like; a name is compared in upper case. Values are
never looked at. Leaving out too much costs a line of configuration (``hand_over``); leaving out too little costs a key.
"""

from collections.abc import Iterable, Mapping
from typing import Final

NEVER: Final = frozenset({"ZUTD_RPC_TOKEN", "ZUTCORE_RPC_TOKEN"})
"""Who holds one of these may command the daemon: no child gets them, whatever its manifest asks for."""

SECRET_NAMES: Final = frozenset(
    {
        "API_KEY",
        "APIKEY",
        "TOKEN",
        "CREDENTIALS",
        "SSHPASS",
        "MYSQL_PWD",
        "DOCKER_AUTH_CONFIG",
        "NPM_CONFIG__AUTH",
        "OPENAI_KEY",
        "ANTHROPIC_KEY",
        "GEMINI_KEY",
        "GOOGLE_KEY",
        "OPENROUTER_KEY",
        "MOONSHOT_KEY",
        "KIMI_KEY",
    }
)
SECRET_PREFIXES: Final = ("AWS_",)
SECRET_PARTS: Final = ("SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "_API_KEY_")
SECRET_SUFFIXES: Final = (
    "_API_KEY",
    "_APIKEY",
    "_API_KEYS",
    "_TOKEN",
    "_TOKENS",
    "_ACCESSTOKEN",
    "_PAT",
    "_CREDENTIAL",
    "_CREDENTIALS",
    "_ACCESS_KEY",
    "_ACCESS_KEY_ID",
    "_PRIVATE_KEY",
    "_ENCRYPTION_KEY",
    "_SIGNING_KEY",
    "_MASTER_KEY",
    "_AUTH_KEY",
    "_SERVICE_KEY",
    "_ACCOUNT_KEY",
    "_SUBSCRIPTION_KEY",
)

BASELINE: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "PWD", "TMPDIR", "TMP", "TEMP", "LANG", "LANGUAGE", "TZ", "TERM", "NO_COLOR"}
)
"""What a program gets that is given only what it asked for; and what begins with ``LC_``."""

NETWORK: Final = frozenset(
    {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"}
)
"""What it gets as well if it may use the network, in upper or lower case: on some machines there is none without."""


def is_secret(name: str) -> bool:
    """Whether a variable of this name holds a credential, as far as a name can tell."""
    upper = name.upper()
    return (
        upper in NEVER
        or upper in SECRET_NAMES
        or upper.startswith(SECRET_PREFIXES)
        or upper.endswith(SECRET_SUFFIXES)
        or any(part in upper for part in SECRET_PARTS)
    )


def child_environment(host: Mapping[str, str], *, hand_over: Iterable[str] = ()) -> dict[str, str]:
    """The environment for a child: ``host`` without secrets, and the names in ``hand_over`` that ``host`` has.

    A name in :data:`NEVER` is not given away even when it is asked for.
    """
    given = frozenset(hand_over)
    return {
        name: value
        for name, value in host.items()
        if name.upper() not in NEVER and (name in given or not is_secret(name))
    }


def confined_environment(host: Mapping[str, str], *, hand_over: Iterable[str], net: bool) -> dict[str, str]:
    """The environment for a child that gets only what it named: :data:`BASELINE`, the names in ``hand_over``, and
    :data:`NETWORK` with ``net``. :data:`NEVER` holds here too.
    """
    wanted = frozenset(hand_over)
    return {
        name: value
        for name, value in host.items()
        if name.upper() not in NEVER
        and (
            name in wanted
            or name in BASELINE
            or (name.startswith("LC_") and not is_secret(name))
            or (net and name.upper() in NETWORK)
        )
    }
