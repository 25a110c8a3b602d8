"""The documentation is part of what is tested."""
