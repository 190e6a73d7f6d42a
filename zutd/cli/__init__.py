"""Arguments to settings to a frontend."""
