"""Graphs: documents compiled to an IR that the token machine runs. Pure."""
