"""What protocol 1 (zot's) says differently from protocol 2. All other frames of it are frames of protocol 2 too."""

from typing import ClassVar

from zutd.frames.define import frame


@frame
class HelloAckV1:
    """The answer to ``hello`` in protocol 1: no session."""

    tag: ClassVar[str] = "hello_ack"
    protocol_version: int
    zot_version: str
    provider: str
    model: str
    cwd: str
    extension_dir: str = ""
    data_dir: str = ""
