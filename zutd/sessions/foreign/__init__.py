"""Sessions of other programs, and of other homes, into this one."""
