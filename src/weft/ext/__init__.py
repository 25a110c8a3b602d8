"""Adapters to other systems. Each needs an extra, and is imported only where it is configured."""
