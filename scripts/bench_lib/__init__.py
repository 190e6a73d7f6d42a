"""What ``scripts/bench`` measures with."""
