"""Goals: a catalogue of steps with typed facts, plans over it, and runs that follow a plan. Pure."""
