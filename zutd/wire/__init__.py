"""How frames are carried: bytes, lines, envelopes, streams."""
