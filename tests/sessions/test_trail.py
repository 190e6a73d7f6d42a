"""The persistent map of last rows."""

from hypothesis import given
from hypothesis import strategies as st

from zutd.sessions.trail import CHAIN, EMPTY, Trail

KEYS = st.tuples(st.sampled_from(["title", "extension_state"]), st.sampled_from(["", "a", "b", "c"]))


@given(st.lists(st.tuples(KEYS, st.integers(0, 200)), max_size=120))
def test_every_trail_ever_made_keeps_what_it_knew(changes: list[tuple[tuple[str, str], int]]) -> None:
    """A trail put onto any older trail answers as a copied dict would, and so do all the older ones, still."""
    trails: list[Trail] = [EMPTY]
    tables: list[dict[tuple[str, str], int]] = [{}]
    for row, (key, onto) in enumerate(changes, 1):
        base = onto % len(trails)
        trails.append(trails[base].put(key, row))
        tables.append({**tables[base], key: row})

    for trail, table in zip(trails, tables, strict=True):
        assert trail.all() == table
        assert all(trail.find(key) == row for key, row in table.items())
        assert trail.find(("title", "nobody")) == 0


def test_a_lookup_never_walks_far() -> None:
    """However many rows of another extension lie between, a chain of changes has at most CHAIN links."""
    trail = EMPTY.put(("extension_state", "mine"), 1)
    for row in range(2, 5000):
        trail = trail.put(("extension_state", "loud"), row)
        links, link = 0, trail
        while link.older is not None:
            links, link = links + 1, link.older
        assert links <= CHAIN

    assert trail.find(("extension_state", "mine")) == 1
