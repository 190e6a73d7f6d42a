"""zutd: a headless agent daemon that supervises a coding agent and its extensions."""

__version__ = "0.1.0"
