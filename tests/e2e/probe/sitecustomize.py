"""Put before the daemon's own start by a test: two signals make it write down what lives in it.

SIGUSR2 asks for its trio tasks, as the scheduler has them; SIGUSR1 for its objects of each class of the extension host,
after collecting garbage. It is the real daemon, and nothing of it knows of this.
"""

import collections
import gc
import json
import os
import signal
import sys
from typing import Any


def tell_tasks(*_: object) -> None:
    """The number of living tasks, and their names."""
    import trio

    names: list[str] = []
    ahead: list[Any] = [trio.lowlevel.current_root_task()]
    while ahead:
        task = ahead.pop()
        names.append(task.name)
        ahead += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    _write({"living": trio.lowlevel.current_statistics().tasks_living, "names": sorted(names)})


def tell_objects(*_: object) -> None:
    """How many objects there are of each class."""
    gc.collect()
    classes = (type(thing) for thing in gc.get_objects())
    _write(collections.Counter(c.__name__ for c in classes if c.__module__.startswith("zutd.extensions.")))


def _write(told: object) -> None:
    path = os.environ["PROBE_FILE"]
    with open(f"{path}.new", "w") as file:
        json.dump(told, file)
    os.replace(f"{path}.new", path)


if "zutd" in sys.orig_argv:
    signal.signal(signal.SIGUSR2, tell_tasks)
    signal.signal(signal.SIGUSR1, tell_objects)
