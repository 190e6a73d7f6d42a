"""Programs that add tools, commands and guards."""
