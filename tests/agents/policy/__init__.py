"""Policies: what is permitted of what the program offers."""
