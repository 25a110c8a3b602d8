"""Identify callers, by API keys and by tokens of an identity provider."""
