"""Expressions, templates and conditions."""
