"""What a script may have. The same for every script: a number that somebody can raise is no limit.

Steps are counted by each language in its own coin (instructions of Lua's machine, forms of Ale), so the same script
ends the same way everywhere. Time is the thread's own processor time: a busy machine does not fail a script.
"""

from typing import Final

SOURCE_CHARS_MAX: Final = 65_536
CACHE_MAX: Final = 1_024  # compiled scripts per language
INPUTS_MAX: Final = 150  # Lua has 200 local variables, and scripts want some of their own

INPUT_BYTES_MAX: Final = 4 * 1024 * 1024
OUTPUT_BYTES_MAX: Final = 4 * 1024 * 1024
OUTPUT_NODES_MAX: Final = 200_000
DEPTH_MAX: Final = 100  # of values, as the runtime has it

TIME_S_MAX: Final = 0.5
WALL_S_MAX: Final = 1.0  # for what only another process can do; it is killed then

LUA_STEPS_MAX: Final = 10_000_000
LUA_LIVE_KB_MAX: Final = 16 * 1024
LUA_MEMORY_MAX: Final = 48 * 1024 * 1024  # with garbage

ALE_STEPS_MAX: Final = 1_000_000
ALE_BYTES_MAX: Final = 64 * 1024 * 1024  # made in one call, kept or not
