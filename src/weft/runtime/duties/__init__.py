"""What a host does in the background, again and again: one file for each duty, and one scheduler for all."""
