"""What is remembered: trees of rows in JSONL files."""
