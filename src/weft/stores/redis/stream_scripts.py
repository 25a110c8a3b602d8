"""The scripts that read streams. The server looks how large an entry is, so that a host gets only what it can hold."""

from __future__ import annotations

from weft.ports.worker_streams import WORD_BYTES
from weft.tokens import TOKEN_CHARS_MAX

# A token that was cut is still too long to be valid.
_FUNCTIONS = f"""
local function token_of(words)
    for place = 1, #words, 2 do
        if words[place] == 'token' then return string.sub(words[place + 1], 1, {TOKEN_CHARS_MAX + 1}) end
    end
    return ''
end
local function size_of(words)
    local size = 0
    for _, word in ipairs(words) do size = size + #word + {WORD_BYTES} end
    return size
end
"""

# Returns new entries, which are read in turns, or else where each stream ends.
# A key that cannot be read is left out, so that it stops no other.
READ = (
    _FUNCTIONS
    + """
local group, consumer = ARGV[1], ARGV[2]
local count, room, most = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local found, ends, over, open = {}, {}, {}, #KEYS
while open > 0 and #found < count and room > 0 do
    for place, key in ipairs(KEYS) do
        if not over[place] and #found < count and room > 0 then
            local answer = redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', key, '>')
            if not answer or answer.err then
                over[place] = true
                open = open - 1
            else
                local id, words = answer[1][2][1][1], answer[1][2][1][2]
                local size = size_of(words)
                if size > most then words = {'token', token_of(words)} else room = room - size end
                found[#found + 1] = {place, id, words, size}
            end
        end
    end
end
if #found == 0 then
    for place, key in ipairs(KEYS) do
        local groups = redis.pcall('XINFO', 'GROUPS', key)
        for _, about in ipairs(groups.err and {} or groups) do
            local known = {}
            for at = 1, #about, 2 do known[about[at]] = about[at + 1] end
            if known['name'] == group then ends[#ends + 1] = {place, known['last-delivered-id']} end
        end
    end
end
return {found, ends}
"""
)

# The library's own call leaves out where to go on. What there is no room for can be claimed again at once.
CLAIM = (
    _FUNCTIONS
    + """
local group, consumer, idle, start = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local count, room, most = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
local answer = redis.call('XAUTOCLAIM', KEYS[1], group, consumer, idle, start, 'COUNT', count, 'JUSTID')
local found, cursor = {}, answer[1]
for _, id in ipairs(answer[2]) do
    if room > 0 then
        for _, entry in ipairs(redis.call('XRANGE', KEYS[1], id, id)) do
            local words = entry[2]
            local size = size_of(words)
            if size > most then words = {'token', token_of(words)} else room = room - size end
            found[#found + 1] = {id, words, size}
        end
    else
        redis.call('XCLAIM', KEYS[1], group, consumer, 0, id, 'IDLE', idle, 'JUSTID')
        cursor = '0-0'
    end
end
return {cursor, found}
"""
)

# Returns ids, tokens, and whether they were given to somebody, without the rest, which may be large.
PUBLISHED = (
    _FUNCTIONS
    + """
local found = redis.call('XRANGE', KEYS[1], ARGV[2], '+', 'COUNT', ARGV[3])
if #found == 0 then return found end
local given = {}
for _, pending in ipairs(redis.call('XPENDING', KEYS[1], ARGV[1], found[1][1], found[#found][1], ARGV[3])) do
    given[pending[1]] = 1
end
local answer = {}
for _, entry in ipairs(found) do
    answer[#answer + 1] = {entry[1], token_of(entry[2]), given[entry[1]] or 0}
end
return answer
"""
)
