"""Deciding what happens next: turns, context, the loop."""
