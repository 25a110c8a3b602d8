"""Which runs this host owns: how they come into its memory, and how they leave it."""
