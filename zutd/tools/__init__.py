"""What the agent can do itself."""
