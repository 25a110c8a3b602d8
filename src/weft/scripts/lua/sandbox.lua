-- The sandbox of scripts: a budget for instructions, time and memory, and the functions that scripts may call.
--
-- A script sees only what `globals` names. It has no metatables, coroutines, loaders, clocks or random numbers. The time of
-- every function here is bounded by its arguments, or the hook stops it, or it asks for the worker process ("elsewhere").
-- A call leaves nothing behind: it has its own environment, and libraries cannot be changed.

local now, patterns, limits, arguments, encode, array = ...

local STEPS_MAX, SECONDS_MAX, KB_MAX, PIECE_MAX = limits()
local HOOK_EVERY = 100
local KB_SMALL = 1024
local KB_KEPT = 2048 -- garbage that may lie about until the next call
local PATTERN_COST_MAX = 4000000 -- single-character comparisons, at a few nanoseconds each
local PLAIN_COST_MAX = 200000000 -- bytes compared
local STOP = {}

local type, tostring, tonumber, select, next, error = type, tostring, tonumber, select, next, error
local pcall, xpcall, load, setmetatable = pcall, xpcall, load, setmetatable
local setupvalue, getinfo, clock, collect = debug.setupvalue, debug.getinfo, os.clock, collectgarbage
local find, sub, gsub, rep, format = string.find, string.sub, string.gsub, string.rep, string.format
local unpack, insert, remove, concat, rawsort = table.unpack, table.insert, table.remove, table.concat, table.sort

-- The budget of the current call.

local armed, stopped, raised, left, started, deadline, line = false, nil, false, 0, 0, 0, 0

local function stop(why)
  stopped = stopped or why
  error(STOP, 0)
end

-- The clock of the process is cheap and never shows less than this thread has used. Only when it says that the time may be
-- up is the clock of the thread read, through Python.
local function check_time()
  local seen = clock()
  if deadline == 0 then deadline = seen + SECONDS_MAX end
  if seen < deadline then return end
  local used = now() - started
  if used >= SECONDS_MAX then stop("time") end
  deadline = seen + (SECONDS_MAX - used)
end

local function hook()
  if not armed then return end
  left = left - HOOK_EVERY
  if left < 0 then stop("steps") end
  local held = collect("count")
  -- With little memory in use, one instruction cannot take long, and reading the clock is slow.
  if held > KB_SMALL or left % (16 * HOOK_EVERY) < HOOK_EVERY then check_time() end
  if held > 2 * KB_MAX then
    collect()
    if collect("count") > KB_MAX then stop("memory") end
  end
end

local function charge(steps)
  left = left - steps
  if left < 0 then stop("steps") end
  if steps > 200 then check_time() end
end

local function size(value) return type(value) == "string" and #value or 0 end

local function expect(kind, value, name, position)
  if type(value) ~= kind then
    local got = value == nil and "no value" or type(value)
    error("bad argument #" .. position .. " to '" .. name .. "' (" .. kind .. " expected, got " .. got .. ")", 3)
  end
end

-- A function whose time grows with the length of its first argument pays for it.
local function paid(library, name)
  local call = library[name]
  return function(subject, ...)
    if type(subject) == "number" then subject = tostring(subject) end
    expect("string", subject, name, 1)
    charge(#subject // 32 + 1)
    return call(subject, ...)
  end
end

-- Basics.

local basics = {type = type, tonumber = tonumber, select = select, error = error, ipairs = ipairs, assert = assert, array = array}

function basics.tostring(value) -- without the address, which differs every time
  local kind = type(value)
  return (kind == "table" or kind == "function") and kind or tostring(value)
end

-- Errors that no script may catch. At the end of the stack the hook cannot run, so a script could continue for ever.
local function settle(ok, problem, ...)
  if stopped then error(STOP, 0) end
  if not ok and type(problem) == "string" then
    if problem == "not enough memory" then stop("memory") end
    if find(sub(problem, 1, 200), "stack overflow", 1, true) or problem == "error in error handling" then stop("depth") end
  end
  return ok, problem, ...
end

function basics.pcall(call, ...) return settle(pcall(call, ...)) end

-- Keys in an order that is the same everywhere: numbers, then text, then false and true.
local function keys_of(subject)
  local numbers, names, flags, ordered, before = {}, {}, {}, true, nil
  for key in next, subject do
    local kind = type(key)
    if kind == "number" then
      ordered = ordered and (before == nil or before < key)
      before = key
      numbers[#numbers + 1] = key
    elseif kind == "string" then
      names[#names + 1] = key
    elseif kind == "boolean" then
      flags[#flags + 1] = key
    else
      error("keys that are tables or functions have no order", 3)
    end
  end
  charge((#names + (ordered and 0 or #numbers)) * 16)
  if not ordered then rawsort(numbers) end
  rawsort(names)
  if #flags == 2 then flags[1], flags[2] = false, true end
  for index = 1, #names do numbers[#numbers + 1] = names[index] end
  for index = 1, #flags do numbers[#numbers + 1] = flags[index] end
  return numbers
end

function basics.pairs(subject)
  expect("table", subject, "pairs", 1)
  local keys, index = keys_of(subject), 0
  return function()
    local key, value
    repeat
      index = index + 1
      key = keys[index]
      if key == nil then return nil end
      value = subject[key]
    until value ~= nil
    return key, value
  end
end

-- `next` remembers the keys of the last table, or iterating over a table would be quadratic.
local walked, walked_keys, walked_index

function basics.next(subject, after)
  expect("table", subject, "next", 1)
  if after == nil then
    walked, walked_keys, walked_index = subject, keys_of(subject), 0
  elseif walked ~= subject or walked_keys[walked_index] ~= after then
    walked, walked_keys, walked_index = subject, keys_of(subject), 1
    while walked_keys[walked_index] ~= after do
      if walked_keys[walked_index] == nil then error("invalid key to 'next'", 2) end
      walked_index = walked_index + 1
    end
  end
  local key, value
  repeat
    walked_index = walked_index + 1
    key = walked_keys[walked_index]
    if key == nil then return nil end
    value = subject[key]
  until value ~= nil
  return key, value
end

-- Text. Patterns cannot be interrupted, so here only those run whose worst case is short.

local function is_short(subject, pattern, anchors)
  local length, width = #subject, #pattern
  if not find(pattern, "[%^%$%*%+%?%.%(%[%%%-]") then return length * width <= PLAIN_COST_MAX end
  if width > 200 then return false end
  local bare = gsub(pattern, "%%.", "")
  if not find(pattern, "%b", 1, true) then bare = gsub(bare, "%[[^%]]*%]", "") end
  local _, loops = gsub(bare, "[%*%+%-%?]", "")
  local _, jumps = gsub(pattern, "%%[b%d]", "")
  local starts = anchors and sub(pattern, 1, 1) == "^" and 0 or 1
  return width * (length + 1.0) ^ (loops + jumps + starts) <= PATTERN_COST_MAX
end

local function matching(name, anchors)
  local call = string[name]
  return function(subject, pattern, third, plain, ...)
    if type(subject) == "number" then subject = tostring(subject) end
    if type(pattern) == "number" then pattern = tostring(pattern) end
    expect("string", subject, name, 1)
    expect("string", pattern, name, 2)
    local short
    if name == "find" and plain then
      short = #subject * #pattern <= PLAIN_COST_MAX
    else
      short = is_short(subject, pattern, anchors)
    end
    if not short and patterns == "bounded" then stop("elsewhere") end
    charge(#subject // 32 + 1)
    check_time()
    return call(subject, pattern, third, plain, ...)
  end
end

local text = {byte = string.byte, char = string.char, len = string.len, sub = sub}
for _, name in next, {"lower", "upper", "reverse"} do text[name] = paid(string, name) end
text.find, text.match, text.gsub = matching("find", true), matching("match", true), matching("gsub", true)
text.gmatch = matching("gmatch", false)

function text.rep(subject, count, between)
  if type(count) == "string" then count = tonumber(count) end
  expect("number", count, "rep", 2)
  local total = (size(subject) + size(between)) * (count > 0 and count or 0)
  if total > PIECE_MAX then stop("memory") end
  charge(total // 32 + 1)
  return rep(subject, count, between)
end

function text.format(layout, ...)
  expect("string", layout, "format", 1)
  if find(gsub(layout, "%%%%", ""), "%%[%-%+ #%d%.]*p") then
    error("'%p' shows an address, which differs every time", 2)
  end
  local given, total = {...}, #layout
  for index = 1, select("#", ...) do
    local kind = type(given[index])
    if kind == "table" or kind == "function" then given[index] = kind end
    total = total + size(given[index])
  end
  charge(total // 16 + 1)
  return format(layout, unpack(given, 1, select("#", ...)))
end

-- Lists.

local lists = {pack = table.pack}

function lists.insert(list, ...)
  expect("table", list, "insert", 1)
  if select("#", ...) > 1 then charge(#list // 8 + 1) end
  return insert(list, ...)
end

function lists.remove(list, ...)
  expect("table", list, "remove", 1)
  if select("#", ...) > 0 then charge(#list // 8 + 1) end
  return remove(list, ...)
end

function lists.concat(list, between, from, to)
  expect("table", list, "concat", 1)
  charge(#list + 1)
  local whole = concat(list, between, from, to)
  charge(#whole // 32 + 1)
  return whole
end

function lists.unpack(list, from, to)
  expect("table", list, "unpack", 1)
  local count = (tonumber(to) or #list) - (tonumber(from) or 1)
  charge(count > 0 and count // 8 or 1)
  return unpack(list, from, to)
end

function lists.move(list, from, to, at, target)
  expect("table", list, "move", 1)
  target = target or list
  if at > from and target == list then
    for index = to - from, 0, -1 do target[at + index] = list[from + index] end
  else
    for index = 0, to - from do target[at + index] = list[from + index] end
  end
  return target
end

local function ascending(a, b) return a < b end

local function merge(from, to, low, middle, high, before)
  local left_at, right_at = low, middle
  for index = low, high - 1 do
    if left_at < middle and (right_at >= high or not before(from[right_at], from[left_at])) then
      to[index], left_at = from[left_at], left_at + 1
    else
      to[index], right_at = from[right_at], right_at + 1
    end
  end
end

-- Lua's own sort chooses its pivots by the clock and cannot be interrupted. This one is also stable.
function lists.sort(list, before)
  expect("table", list, "sort", 1)
  if before ~= nil then expect("function", before, "sort", 2) end
  before = before or ascending
  local count, from, to, width = #list, list, {}, 1
  while width < count do
    for low = 1, count, 2 * width do
      local middle = low + width <= count and low + width or count + 1
      local high = low + 2 * width <= count and low + 2 * width or count + 1
      merge(from, to, low, middle, high, before)
    end
    from, to, width = to, from, 2 * width
  end
  if from ~= list then
    for index = 1, count do list[index] = from[index] end
  end
end

local maths = {}
for name, value in next, math do
  if name ~= "random" and name ~= "randomseed" then maths[name] = value end
end

local code_points = {char = utf8.char, charpattern = utf8.charpattern, codes = utf8.codes}
for _, name in next, {"codepoint", "len", "offset"} do code_points[name] = paid(utf8, name) end

local function frozen(name, library)
  local function refuse() error("the library '" .. name .. "' cannot be changed", 2) end
  return setmetatable({}, {__index = library, __newindex = refuse, __metatable = false})
end

local libraries = {string = text, table = lists, math = maths, utf8 = code_points}
for name, library in next, libraries do basics[name] = frozen(name, library) end
local globals = {__index = basics, __metatable = false}

local of_text = getmetatable("")
of_text.__index, of_text.__metatable = text, false

-- Calls.

local chunks = {}

local function compile(id, source)
  local ok, chunk, problem = pcall(load, source, "=script", "t", {})
  if not ok then return "memory" end
  chunks[id] = chunk
  return problem
end

local function locate(problem)
  if stopped then return problem end
  for level = 2, 1000 do
    local info = getinfo(level, "Sl")
    if info == nil then break end
    if info.source == "=script" and info.currentline > 0 then
      line = info.currentline
      break
    end
  end
  return problem
end

local function attempt(id, given, truth)
  local chunk = chunks[id]
  local values, count = arguments(given)
  setupvalue(chunk, 1, setmetatable({}, globals))
  armed = true
  local ok, value = xpcall(chunk, locate, unpack(values, 1, count))
  armed = false
  if not ok then
    raised = true
    error(value, 0)
  end
  if truth then return value and "true" or "false" end
  return encode(value)
end

local function explain(problem)
  if stopped then return "limit", stopped, line end
  if problem == "not enough memory" then return "limit", "memory", line end
  if type(problem) == "string" then return "failed", sub(problem, 1, 2000), line end
  if not raised then -- by `values`, about what came in or goes out
    if problem.limit then return "limit", problem.limit, line end
    return "failed", problem.reason, line
  end
  local shown = basics.tostring(problem)
  if type(problem) == "table" then
    local ok, written = pcall(encode, problem)
    shown = ok and sub(written, 1, 2000) or "a table"
  end
  return "failed", "it raised " .. shown, line
end

local function run(id, given, truth, at)
  stopped, raised, left, started, deadline, line = nil, false, STEPS_MAX, at, 0, 0
  local ok, result = pcall(attempt, id, given, truth)
  armed, walked, walked_keys = false, nil, nil
  if collect("count") > KB_KEPT then collect() end
  if ok then return "ok", result, 0 end
  return explain(result)
end

debug.sethook(hook, "", HOOK_EVERY)
local everything = _G
for name in next, everything do everything[name] = nil end

return compile, run
