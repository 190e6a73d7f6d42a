"""Whatever frames an extension sends, in whatever order, the host goes on and keeps its promises."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extensions.rig import FakeSurface, NoWatcher
from zutd.extensions.extension import Extension, Surroundings
from zutd.extensions.host import Host
from zutd.extensions.manifest import Found, Manifest
from zutd.extensions.process import Child, Launch
from zutd.extensions.roster import HostSettings
from zutd.extensions.sandbox import Sandbox
from zutd.frames.extension import FROM_EXTENSION
from zutd.wire.codec import encode_frame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
SOME = "id name description schema events intercept content details key text level lines panel panel_id title message"
MORE = "kind position action deferred open_panel activate_tools"
KEYS = st.sampled_from(f"{SOME} {MORE}".split())
VALUES = JSON | st.sampled_from(["x", "", ["turn_start"], ["tool_call"], {"type": "object"}, {"id": "p"}, True])
FRAMES = st.fixed_dictionaries(
    {"type": st.sampled_from([*FROM_EXTENSION, "unknown"])}, optional={"id": VALUES, "name": VALUES, "text": VALUES}
).flatmap(lambda frame: st.dictionaries(KEYS, VALUES, max_size=6).map(lambda more: {**more, **frame}))
LINES = (
    FRAMES.map(lambda frame: json.dumps(frame).encode())
    | st.binary(max_size=20)
    | JSON.map(lambda v: json.dumps(v).encode())
)


class Desk:
    """A host with one extension that came up, and a hand on the lines that its child sends."""

    def __init__(self, home: str) -> None:
        self.events: list[Any] = []
        watcher = NoWatcher()
        self.host = Host(
            HostSettings(cwd=home, home=home, environ={}, version="0", search=False),
            FakeSurface(),
            self.events.append,
            watcher,
        )
        found = Found(home, "explicit", "ok", Manifest(name="ext", exec="./x"))
        sandbox = Sandbox("auto", workspace=home, home=home, watcher=watcher)
        around = Surroundings(home=home, environ={}, watcher=watcher, hello_deadline=1, sandbox=sandbox)
        self.extension = Extension(found, self.host, around)
        self.host.roster._extensions["ext"] = self.extension
        launch = Launch(name="ext", program="/x", args=(), directory=home, env={})
        self.child = Child(launch, self.extension, self.extension.diagnosis.open_log(self.extension.log_path), watcher)
        self.extension._child = self.child
        self.child._greeted.set()

    def line(self, line: bytes) -> None:
        """The child has written a line."""
        self.child._on_line(line)


@contextmanager
def desk() -> Iterator[Desk]:
    """A desk for one example."""
    with tempfile.TemporaryDirectory() as home:
        made = Desk(home)
        try:
            yield made
        finally:
            made.extension.diagnosis.close_log()


@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, max_size=25))
def test_no_frame_breaks_the_host(lines: list[bytes]) -> None:
    """Every line is taken, ignored or complained of; all events can be written; after the end nothing is left up."""

    async def play() -> None:  # some frames ask what time it is
        check(lines)

    trio.run(play)


def check(lines: list[bytes]) -> None:
    """Let the child of a new desk write these lines, and look at what became of them."""
    with desk() as it:
        for line in lines:
            it.line(line)
        chrome = it.host.chrome
        assert all(view.position == "above_input" for view in chrome.widgets)
        assert all(status.text.strip() for status in chrome.statuses)
        for event in it.events:
            json.loads(encode_frame(event))
        for claim in it.extension.claims.tools:
            assert claim.schema["type"] == "object"
        it.extension._forget()
        it.host.went(it.extension, "exit status 0")
        assert (chrome.widgets, chrome.statuses, chrome.panels, chrome.notes) == ((), (), (), ())
        assert (it.host.tools(), it.host.commands()) == ((), ())
