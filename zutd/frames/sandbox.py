"""How strictly extensions are kept to the permissions that they declare: the words for it, on every wire and flag."""

from typing import Final, Literal, get_args

SandboxMode = Literal["auto", "require", "off"]
SANDBOX_MODES: Final[tuple[SandboxMode, ...]] = get_args(SandboxMode)
