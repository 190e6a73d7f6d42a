"""What is said and stored: frozen attrs values. No I/O, no trio, nothing else of ours."""
