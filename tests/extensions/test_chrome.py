"""What is shown stays bounded, and what is taken away is told."""

from typing import Any

from zutd.extensions.chrome import NOTES, SHOWN, Chrome
from zutd.frames.extension import Notify, OpenPanel, Status, Widget
from zutd.frames.ui import Panel


def test_chrome_is_bounded() -> None:
    """Whoever invents ever new keys keeps the newest ones; frontends are told what went; others are untouched."""
    events: list[Any] = []
    chrome = Chrome(events.append)
    chrome.take("other", Status(key="k", text="stays"))
    for n in range(SHOWN + 3):
        chrome.take("e", Status(key=f"s{n}", text="x"))
        chrome.take("e", Widget(id=f"w{n}"))
        chrome.take("e", OpenPanel(panel=Panel(id=f"p{n}")))
        chrome.take("e", Notify(message=f"n{n}"))
        chrome.take("e", Status(key=f"s{n}", text="again"))

    assert [s.key for s in chrome.statuses] == ["k", *(f"s{n}" for n in range(3, SHOWN + 3))]
    assert [w.id for w in chrome.widgets] == [f"w{n}" for n in range(3, SHOWN + 3)]
    assert [p.panel_id for p in chrome.panels] == [f"p{n}" for n in range(3, SHOWN + 3)]
    assert len(chrome.notes) == NOTES
    gone = [
        e for e in events if e.tag in ("ext_widget_clear", "ext_panel_close") or (e.tag == "ext_status" and not e.text)
    ]
    assert len(gone) == 9
