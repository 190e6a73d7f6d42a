"""The page to read: shows what was said, and nothing in it can act, whatever was said."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.sessions.helpers import HEADER, TIME, line, root, tree_of
from zutd.frames.blocks import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from zutd.frames.define import evolve
from zutd.frames.rows import MessageRow, UsageRow, VerdictRow
from zutd.sessions.export_html import policy, style, to_html
from zutd.sessions.export_markup import diff, escape, inline, link, markdown, plain
from zutd.sessions.export_transcript import transcribe
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode_frame

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "</style><script>alert(1)</script>",
    "</title><iframe src='//evil.example'></iframe>",
    "--><body onload=alert(1)>",
    "[click](javascript:alert(1)) ![x](https://evil.example/x.png) <https://evil.example/><base href=//evil>",
    '[a](https://evil.example/"onmouseover="alert(1)) [b](data:text/html;base64,PHNjcmlwdD4=) [c](//evil.example)',
    "`</code><script>alert(1)</script>`\n```html\n</pre><script>alert(1)</script>\n```",
    "| a | b |\n|---|---|\n| <script> | `x|y` |\n\n> <object data=x>\n\n- <embed src=x>\n1. <link href=x>",
    "&lt;script&gt; &#60;script&#62; \x00\x1b[31m\u202e\ufffe",
    "# <h1 onclick=alert(1)>\n## ** <b> ** ~~<i>~~ *<u>*",
]

TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "nav", "section", "div", "span"),
    *(
        "h1",
        "h3",
        "h4",
        "h5",
        "h6",
        "p",
        "b",
        "strong",
        "em",
        "del",
        "code",
        "pre",
        "blockquote",
        "hr",
        "ul",
        "ol",
        "li",
    ),
    *("table", "thead", "tbody", "tr", "th", "td", "details", "summary", "dl", "dt", "dd", "a", "img", "time"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "class", "id", "dir", "open", "href", "rel", "datetime"),
    *("alt", "src", "start"),
}
VOID = {"meta", "hr", "img"}


class Page(HTMLParser):
    """Reads a page as a browser does, and fails at everything that could act or load."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.styles: list[str] = []

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        """Only our own tags, only harmless attributes."""
        assert tag in TAGS, tag
        for name, value in attributes:
            assert name in ATTRIBUTES, (tag, name)
            if name == "href":
                assert re.match(r"https?://|mailto:|#r\d+$", value, re.IGNORECASE), value
                self.links.append(value)
            if name == "src":
                assert tag == "img"
                assert re.fullmatch(r"data:image/(png|jpeg|gif|webp|avif|bmp);base64,[A-Za-z0-9+/=]+", value)
                self.pictures.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Every tag is closed where it should be."""
        assert self.open, tag
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """What is read, and the style apart from it."""
        (self.styles if self.open and self.open[-1] == "style" else self.texts).append(data)

    def handle_comment(self, data: str) -> None:
        """There are none."""
        raise AssertionError(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        """There are none."""
        raise AssertionError(f"a declaration: {data}")

    @property
    def text(self) -> str:
        """All that can be read."""
        return "".join(self.texts)


def read(page: str) -> Page:
    """A page that is well formed and harmless."""
    reader = Page()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def everywhere(text: str, **header: str) -> Tree:
    """A session that says this in every field that can say something."""
    tree = Tree(evolve(HEADER, cwd=text, **header))

    def add(row: Any) -> None:
        tree.append(row if isinstance(row, bytes) else encode_frame(row))

    def place() -> dict[str, Any]:
        return {"n": len(tree) + 1, "parent": len(tree) or None, "time": text}

    def say(role: Any, *content: Any, **more: Any) -> None:
        add(MessageRow(**place(), message=Message(role=role, content=content, time=text, **more)))

    add(root(title=text))
    add(line(2, 1, "import", format=text, file=text))
    say("user", Text(text=text), Image(mime_type=text, data=text), Image(mime_type="image/png", data=text))
    call = ToolCall(
        id="c", name=text, args={text: text, "path": text, "more": [text, {text: text}], "lines": f"{text}\n"}
    )
    odd = ToolCall(id="d", name=text, args={}, invalid=text)
    origin = {"provider": text, "model": text, "stop": text}
    say("assistant", Thinking(text=text), Text(text=text), call, odd, **origin, partial=True)
    more: dict[str, Any] = {"extension": text, "event": text, "decision": text, "latency_ms": 1.0}
    add(VerdictRow(**place(), **more, tool_id="c"))
    add(VerdictRow(**place(), **more))
    details = {text: text, "diff": f"@@ -1 +1 @@\n-{text}\n+{text}", "exit_code": text, "added": text, "removed": 1}
    result = ToolResult(call_id="c", name=text, content=(Text(text=text),), is_error=False, details=details)
    lone = ToolResult(call_id="?", name=text, extension=text, content=(Text(text=text),), is_error=True)
    say("tool", result, evolve(result, call_id="d", extension=text, details={"x": text}, is_error=True), lone)
    add(line(len(tree) + 1, len(tree), "label", text=text))
    add(line(len(tree) + 1, len(tree), "settings", provider=text, model=text, reasoning=text))
    kept = {"first_kept": 1, "tokens_before": 1, "tokens_after": 1, "reason": text}
    add(line(len(tree) + 1, len(tree), "compaction", summary=text, **kept))
    used = Usage(input=1, output=1, reasoning=None, cache_read=0, cache_write=0, cost_usd=1.5)
    add(UsageRow(**place(), turn=used, session=used))
    return tree


def page_of(tree: Tree) -> str:
    """The page of the active branch."""
    return to_html(transcribe(tree, tree.tip()), [tree.header.cwd])


# --- nothing acts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_was_said_acts(text: str) -> None:
    """In no field of any row: only our own tags and attributes, no address but the web's, no picture from elsewhere."""
    page = page_of(everywhere(text))

    reader = read(page)
    assert reader.styles == [style()]
    assert reader.pictures == []
    assert "javascript:" not in "".join(reader.links).lower()
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u202a-\u202e]", page)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.sampled_from([*HOSTILE, "`", "```", "**", "[", "](", "http://a", "|", "\n", "> ", "- ", "1. ", "    ", "&"])
        | st.text(max_size=8),
        max_size=12,
    ).map("".join)
)
@example("*[*](http://a)*")
@example("[x](http://a(b)c)")
def test_no_mixture_acts(text: str) -> None:
    """Whatever is put together, in a whole page and in each way of showing a text."""
    read(page_of(everywhere(text)))
    for show in (markdown, inline, escape, plain, diff):
        read(show(text))


def test_the_page_forbids_what_it_does_not_need() -> None:
    """Should anything ever come through: no script, no request, no form; only this style, by its hash."""
    page = page_of(everywhere("x"))

    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    assert f"<style>{style()}</style>" in page
    assert f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'" in page
    assert page.index("Content-Security-Policy") < page.index("<title>")
    assert policy() in page
    assert not re.search(r"url\(|@import|https?:", style())
    assert "<script" not in page


def test_only_pictures_are_shown_as_pictures() -> None:
    """A type that is a document, or data that is none, becomes a word."""
    kinds = ["image/png", "IMAGE/JPEG", "image/svg+xml", "text/html", "image/png;x"]
    images = [Image(mime_type=kind, data=PIXEL) for kind in kinds] + [Image(mime_type="image/png", data="")]
    said = Message(role="user", content=tuple(images), time=TIME)
    tree = tree_of(root(), encode_frame(MessageRow(n=2, parent=1, time=TIME, message=said)))

    reader = read(page_of(tree))

    assert [source[:16] for source in reader.pictures] == ["data:image/png;b", "data:image/jpeg;"]
    assert reader.text.count("which is not shown") == 4


# --- it shows what was said ------------------------------------------------------------------------------------------


def conversation() -> Tree:
    """A prompt, calls with a diff, an error, a block and no result, and an answer."""
    tree = tree_of(root(title="The title"))

    def say(role: Any, *content: Any, **more: Any) -> None:
        said = Message(role=role, content=content, time="2025-03-04T05:06:07.000Z", **more)
        n = len(tree) + 1
        tree.append(encode_frame(MessageRow(n=n, parent=n - 1, time=TIME, message=said)))

    def decide(call: str, decision: str) -> None:
        n = len(tree) + 1
        more: dict[str, Any] = {"extension": "guard", "event": "tool_call", "latency_ms": 2.5}
        tree.append(encode_frame(VerdictRow(n=n, parent=n - 1, time=TIME, decision=decision, tool_id=call, **more)))

    say("user", Text(text="Please  keep\n  my spaces & <tags>"))
    edit = ToolCall(id="1", name="edit", args={"path": "a.py"})
    bash = ToolCall(id="2", name="bash", args={"command": "false"})
    rest = ToolCall(id="3", name="todo", args={})
    say("assistant", Text(text="**Look** at `this`"), edit, bash, evolve(bash, id="9"), rest, provider="p", model="m")
    decide("1", "allow")
    decide("9", "block")
    change = "@@ -1,2 +1,2 @@\n-old\n+new\n same\n"
    details = {"diff": change, "added": 1, "removed": 1, "diff_truncated": True}
    done = (Text(text=f"Edited a.py\n{change}"),)
    say("tool", ToolResult(call_id="1", name="edit", content=done, is_error=False, details=details))
    failed = ToolResult(call_id="2", name="bash", content=(Text(text="\x1b[31mbad\x1b[0m"),), is_error=True)
    say("tool", evolve(failed, details={"exit_code": 3}), evolve(failed, call_id="9"))
    say("assistant", Text(text="Cut"), stop="aborted", partial=True)
    say("user", Text(text="again"))
    return tree


def test_a_conversation_can_be_read() -> None:
    """Title, facts, texts, calls with their state, diffs by line, what was cut short, links to the prompts."""
    page = page_of(conversation())
    reader = read(page)

    assert "<h1>The title</h1>" in page
    assert "Please  keep\n  my spaces & <tags>" in reader.text
    assert "<strong>Look</strong> at <code>this</code>" in page
    assert '<span class="d">-old</span><span class="a">+new</span><span class="c"> same</span>' in page
    assert page.count("@@ -1,2 +1,2 @@") == 1
    assert "The rest of the difference was left out." in page
    assert '<span class="badge bad">exit 3</span>' in page
    assert '<span class="badge bad">blocked</span>' in page
    assert "guardblock (2.5 ms)" in reader.text
    assert '<span class="badge warn">no result</span>' in page
    assert '<span class="badge warn">aborted</span>' in page
    assert "[31m" not in page
    assert "bad" in reader.text
    assert {"#r2", "#r8"} <= set(reader.links)
    assert "2025-03-04 05:06" in reader.text


def test_an_empty_branch_is_a_page() -> None:
    """Nothing was said: a page that says so by being empty."""
    assert "Session" in read(page_of(tree_of(root()))).text


def test_the_other_branches_are_counted() -> None:
    """A reader knows that there is more."""
    tree = conversation()
    tree.append(line(len(tree) + 1, 2, "branch", id="b", fork_point=1))
    assert "Other branches:1" in read(page_of(tree)).text.replace("Other branches1", "Other branches:1")


# --- Markdown --------------------------------------------------------------------------------------------------------


TABLE = (
    '<div class="wide"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>'
    "<tr><td>1|2</td><td><code>x</code></td></tr></tbody></table></div><p>end</p>"
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a\nb\n\nc", "<p>a\nb</p><p>c</p>"),
        ("# A #\n###### F\n####### no", "<h3>A</h3><h6>F</h6><p>####### no</p>"),
        ("---\n***", "<hr><hr>"),
        ("> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"),
        ("- a\n- b\n  more\n  - c\n* d", "<ul><li>a</li><li>b\nmore<ul><li>c</li></ul></li><li>d</li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("- a\n\n  b\n\nc", "<ul><li><p>a</p><p>b</p></li></ul><p>c</p>"),
        ("\t- a\n\t\t- b", "<ul><li>a<ul><li>b</li></ul></li></ul>"),
        ("```py\na <b\n\tc\n```\nd", "<pre><code>a &lt;b\n\tc</code></pre><p>d</p>"),
        ("````\n```\n````", "<pre><code>```</code></pre>"),
        ("~~~\nnever closed", "<pre><code>never closed</code></pre>"),
        ("```diff\n-a\n```", '<pre class="diff"><span class="d">-a</span></pre>'),
        ("- a\n  ```\n  x\n  ```", "<ul><li>a<pre><code>x</code></pre></li></ul>"),
        ("|a|b|\n|-|:-:|\n|1\\|2|`x`|\nend", TABLE),
        ("a | b\nno table", "<p>a | b\nno table</p>"),
    ],
)
def test_blocks(text: str, wanted: str) -> None:
    """Paragraphs, headings, rules, quotations, lists, code and tables."""
    assert markdown(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("**a *b* c** _d_ ~~e~~", "<strong>a <em>b</em> c</strong> <em>d</em> <del>e</del>"),
        ("snake_case_name 2*3*4 __init__ * a *", "snake_case_name 2*3*4 __init__ * a *"),
        ("`` a`b `` `c`", "<code>a`b</code> <code>c</code>"),
        (r"\*not\* \`this\`", "*not* `this`"),
        ("see https://a.b/c_d(e). Yes", "see {https://a.b/c_d(e}). Yes"),
        ("<https://a.b>", "{https://a.b}"),
        ('[`x`](https://a.b) [y](https://a.b "t")', "{https://a.b|<code>x</code>} {https://a.b|y}"),
        ("[y](mailto:a@b.c) [z](ftp://a)", "{mailto:a@b.c|y} z"),
        ("![alt](https://a.b/c.png)", "{https://a.b/c.png|alt}"),
    ],
)
def test_spans(text: str, wanted: str) -> None:
    """Emphasis, code and links; in the wanted text a link is ``{target|text}``."""

    def shown(found: "re.Match[str]") -> str:
        return link(found[1], found[2] or found[1])

    assert inline(text) == re.sub(r"\{([^|}]+)\|?([^}]*)\}", shown, wanted)


def test_characters_that_hide_or_reorder_are_shown() -> None:
    """Controls and halves of characters become a sign, reordering ones their names; line ends are one kind."""
    assert escape("a\x00b\ud800\ufffe\x9b\r\nc\rd\te\"'") == "a\ufffdb\ufffd\ufffd\ufffd\nc\nd\te&quot;&#x27;"
    assert escape("\u202eabc\u2069") == "[U+202E]abc[U+2069]"
    assert plain("\x1b[1;31mred\x1b[0m\x1b]0;title\x07\x1b(B.") == "red."


def test_links_go_nowhere_else() -> None:
    """Every other scheme is text."""
    for target in (
        "javascript:x",
        "data:x",
        "//a",
        "/a",
        "#a",
        "file:///a",
        "https://a b",
        "vbscript:x",
        "JAVASCRIPT:x",
    ):
        assert link(target, "t") == "t"


@pytest.mark.parametrize(
    "unit", ["**a ", "`a ", "[a](", "*a ", "> ", "- ", "|-", "# ", "~~a ", "http://", "\x1b[", "\\"]
)
def test_long_texts_cost_their_length(unit: str) -> None:
    """No text makes the reading explode."""
    for text in (unit * 20_000, (unit + "\n") * 5_000):
        assert markdown(text)
        assert plain(text) is not None


def test_everything_is_nested_only_so_deep() -> None:
    """Deeper quotations and lists are shown as they were written."""
    read(markdown("> " * 500 + "x"))
    read(markdown("\n".join("  " * depth + "- x" for depth in range(300))))
