"""What choosing a model costs at the start of the daemon."""

import subprocess
import sys

CODE = """
import sys
import attrs, msgspec, trio
import zutd.models.base
before = set(sys.modules)
from zutd.models import select
select.choose(select.Wish(), zut_home=None, env={})
print(*sorted(set(sys.modules) - before))
"""


def test_the_scripted_model_loads_nothing_dear() -> None:
    """No HTTP client, no wire, no catalogue, nothing new of the standard library: the start waits for none of them."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"zutd.models.{name}" for name in ("script", "scripted", "select", "shape")]
