"""What the agent gets of an extension's result."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.tool import IMAGE_TYPES, read_result
from zutd.frames.blocks import Image, Text
from zutd.frames.extension import ResultBlock, ToolResultFrame

BLOCKS = st.builds(
    ResultBlock,
    type=st.sampled_from(["text", "image", "video", ""]),
    text=st.text(max_size=5),
    mime_type=st.sampled_from([*sorted(IMAGE_TYPES), "image/tiff", ""]),
    data=st.binary(max_size=4).map(lambda raw: base64.b64encode(raw).decode()) | st.text(max_size=5),
)


@given(st.lists(BLOCKS, max_size=4), st.booleans())
def test_a_result_is_never_empty_and_never_worse_than_it_says(blocks: list[ResultBlock], is_error: bool) -> None:
    """Every result has content that a provider takes: texts that are not empty, pictures that decode."""
    output = read_result(ToolResultFrame(id="x", content=tuple(blocks), is_error=is_error), "e/t")

    assert output.content
    for block in output.content:
        if isinstance(block, Text):
            assert block.text
        else:
            assert block.mime_type in IMAGE_TYPES
            assert base64.b64decode(block.data, validate=True)
    lost = [b for b in blocks if b.type == "image"]
    kept = [b for b in output.content if isinstance(b, Image)]
    assert output.is_error == (is_error or len(kept) < len(lost))


def test_details_and_activations_go_through() -> None:
    """Details are kept as they are, ``null`` too."""
    output = read_result(ToolResultFrame(id="x", details=None, activate_tools=("a",)), "e/t")

    assert (output.details, output.activate) == (None, ("a",))
