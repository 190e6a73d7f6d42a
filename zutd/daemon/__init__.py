"""The assembled program."""
