"""The limits of scripts. They are the same for every script and cannot be changed.

Each language counts its own steps (instructions in Lua, forms in Ale), so a script ends in the same way on every
machine. Time is the processor time of the thread, so a busy machine does not fail a script.
"""

from typing import Final

SOURCE_CHARS_MAX: Final = 65_536
CACHE_MAX: Final = 1_024  # compiled scripts per language
INPUTS_MAX: Final = 150  # Lua allows 200 local variables, and a script needs some of its own

INPUT_BYTES_MAX: Final = 4 * 1024 * 1024
OUTPUT_BYTES_MAX: Final = 4 * 1024 * 1024
OUTPUT_NODES_MAX: Final = 200_000
DEPTH_MAX: Final = 100  # the same limit as for all values

TIME_S_MAX: Final = 0.5
WALL_S_MAX: Final = 1.0  # after this time, the process of a call is killed

LUA_STEPS_MAX: Final = 10_000_000
LUA_LIVE_KB_MAX: Final = 16 * 1024
LUA_MEMORY_MAX: Final = 48 * 1024 * 1024  # garbage included

ALE_STEPS_MAX: Final = 1_000_000
ALE_BYTES_MAX: Final = 64 * 1024 * 1024  # all values made in one call, including garbage
