"""What only one store does."""
