"""What every run has, whatever its style. Pure."""
