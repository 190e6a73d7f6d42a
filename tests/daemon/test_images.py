"""Pictures of a prompt are what a provider can read, or the prompt is refused with the place of the bad one."""

import base64

import pytest

from zutd.daemon.errors import CommandError
from zutd.daemon.images import checked
from zutd.frames.blocks import Image

GIF = base64.b64encode(b"GIF89a....").decode()


def test_a_picture_has_the_type_that_its_bytes_show() -> None:
    """Names lie, and providers look at the bytes; bytes that nobody knows keep their name."""
    given = [Image(mime_type="image/png", data=GIF), Image(mime_type="image/webp", data="aGVsbG8=")]
    assert [image.mime_type for image in checked(given, "prompt")] == ["image/gif", "image/webp"]
    assert [image.data for image in checked(given, "prompt")] == [GIF, "aGVsbG8="]


@pytest.mark.parametrize("data", ["", "!!!", "aGVsbG8", "aGVs\nbG8=", "aGVsbG8=aGVsbG8="])
def test_data_that_is_no_picture_is_refused_with_its_place(data: str) -> None:
    """Not base64, or nothing: the path names which."""
    good = Image(mime_type="image/png", data=GIF)
    with pytest.raises(CommandError) as caught:
        checked([good, Image(mime_type="image/png", data=data)], "steer")
    assert caught.value.kind == "invalid_params"
    assert "bad steer" in caught.value.message
    assert "$.images[1].data" in caught.value.message


@pytest.mark.parametrize("mime_type", ["", "text/plain", "image/svg+xml"])
def test_types_that_no_model_reads_are_refused(mime_type: str) -> None:
    """Neither the name nor the bytes are a picture's."""
    with pytest.raises(CommandError, match=r"\$\.images\[0\]\.mime_type"):
        checked([Image(mime_type=mime_type, data="aGVsbG8=")], "prompt")
