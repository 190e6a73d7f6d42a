"""Child processes: their environment, their groups, and that none is left behind."""
