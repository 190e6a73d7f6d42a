"""Talking to language models: one wire a file, one retry policy, one place that knows HTTP."""
