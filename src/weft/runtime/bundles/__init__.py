"""Bundles: runs as one file, to keep them, to look at them elsewhere and to go on with them there."""
