"""Who calls, and whose runs they see: API keys, bearer tokens of an identity provider, tenants."""
