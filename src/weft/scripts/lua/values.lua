-- Convert JSON to Lua values and back. This runs outside the budget of a script, so everything here is bounded.
--
-- Null is nil: a null field is absent, a null element is a hole. An array has a mark, so that an empty one stays an array;
-- `array(t)` marks one that a script made. A table without a mark and without keys is an
-- object. Objects are written with sorted keys, because the order of a Lua table differs between processes.

local BYTES_MAX, NODES_MAX, DEPTH_MAX = ...

local type, next, error, tonumber, setmetatable, getmetatable = type, next, error, tonumber, setmetatable, debug.getmetatable
local byte, find, sub, match, gsub, format = string.byte, string.find, string.sub, string.match, string.gsub, string.format
local char, concat, sort, mathtype, huge = utf8.char, table.concat, table.sort, math.type, math.huge

local ARRAY = {__metatable = false, __name = "array"}
local SHORT = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/"}
local LONG = {['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t"}
for code = 0, 31 do
  local control = string.char(code)
  LONG[control] = LONG[control] or format("\\u%04x", code)
end

-- Reading: the text is what our own encoder wrote, compact and valid.

local read

local function meant(letter, hex)
  if letter == "u" then return char(tonumber(hex, 16)) end
  return SHORT[letter] .. hex
end

-- In one pass: after `\\`, a `u0041` is text.
local function unescape(escaped)
  return (gsub(escaped, "\\(.)(%x?%x?%x?%x?)", meant))
end

local function read_text(text, at)
  local stop = find(text, '["\\]', at)
  if byte(text, stop) == 34 then return sub(text, at, stop - 1), stop + 1 end
  local from = at
  while byte(text, stop) == 92 do stop = find(text, '["\\]', stop + 2) end
  return unescape(sub(text, from, stop - 1)), stop + 1
end

local function read_number(text, at)
  local digits = match(text, "^[-+.%deE]+", at)
  local number = tonumber(digits)
  if mathtype(number) == "float" and not find(digits, "[.eE]") then
    error({reason = "an input is " .. sub(digits, 1, 40) .. ", and integers of Lua have 64 bits"}, 0)
  end
  return number, at + #digits
end

local function read_array(text, at)
  local array, count = setmetatable({}, ARRAY), 0
  if byte(text, at) == 93 then return array, at + 1, 0 end
  while true do
    count = count + 1
    array[count], at = read(text, at)
    if byte(text, at) == 93 then return array, at + 1, count end
    at = at + 1
  end
end

local function read_object(text, at)
  local object, name = {}, nil
  if byte(text, at) == 125 then return object, at + 1 end
  while true do
    name, at = read_text(text, at + 1)
    object[name], at = read(text, at + 1)
    if byte(text, at) == 125 then return object, at + 1 end
    at = at + 1
  end
end

function read(text, at)
  local first = byte(text, at)
  if first == 34 then return read_text(text, at + 1) end
  if first == 123 then return read_object(text, at + 1) end
  if first == 91 then return read_array(text, at + 1) end
  if first == 116 then return true, at + 4 end
  if first == 102 then return false, at + 5 end
  if first == 110 then return nil, at + 4 end
  return read_number(text, at)
end

local function arguments(text)
  local array, _, count = read_array(text, 2)
  return array, count
end

-- Writing: the value is whatever a script made.

local nodes, bytes, pieces, path

local function refuse(what, depth)
  local place = {}
  for level = 1, depth do
    local key = path[level]
    place[level] = type(key) == "number" and "[" .. key .. "]" or (level > 1 and "." or "") .. key
  end
  local where = depth > 0 and sub(" (at `" .. concat(place), 1, 80) .. "`)" or ""
  error({reason = "it returns " .. what .. where}, 0)
end

local function put(piece)
  bytes = bytes + #piece
  if bytes > BYTES_MAX then error({limit = "size"}, 0) end
  pieces[#pieces + 1] = piece
end

local function put_text(text)
  if bytes + #text > BYTES_MAX then error({limit = "size"}, 0) end
  put('"')
  put((gsub(text, '[%c"\\]', LONG)))
  put('"')
end

local function put_number(number, depth)
  if mathtype(number) == "integer" then return put(format("%d", number)) end
  if number ~= number or number == huge or number == -huge then
    refuse(number ~= number and "a number that is none (nan)" or "an infinite number", depth)
  end
  local written = gsub(format("%.17g", number), ",", ".") -- some countries write a comma
  put(find(written, "[.e]") and written or written .. ".0")
end

local write

local function write_array(array, last, depth)
  if last > NODES_MAX then error({limit = "size"}, 0) end
  put("[")
  for index = 1, last do
    if index > 1 then put(",") end
    path[depth + 1] = index
    write(array[index], depth + 1)
  end
  put("]")
end

local function write_object(object, names, depth)
  sort(names)
  put("{")
  for index = 1, #names do
    local name = names[index]
    if index > 1 then put(",") end
    put_text(name)
    put(":")
    path[depth + 1] = name
    write(object[name], depth + 1)
  end
  put("}")
end

local function write_table(value, depth)
  if depth >= DEPTH_MAX then error({limit = "depth"}, 0) end
  local names, positions, last = {}, 0, 0
  for key in next, value do
    local kind = mathtype(key) or type(key)
    if kind == "string" then
      names[#names + 1] = key
    elseif kind == "integer" and key > 0 then
      positions, last = positions + 1, key > last and key or last
    else
      refuse("a table with a key that is neither a name nor a position", depth)
    end
    if #names + positions + nodes > NODES_MAX then error({limit = "size"}, 0) end
  end
  local marked = getmetatable(value) == ARRAY
  if #names > 0 and (positions > 0 or marked) then refuse("a table with both names and positions", depth) end
  if positions > 0 or marked then return write_array(value, last, depth) end
  return write_object(value, names, depth)
end

function write(value, depth)
  nodes = nodes + 1
  if nodes > NODES_MAX then error({limit = "size"}, 0) end
  local kind = type(value)
  if kind == "table" then return write_table(value, depth) end
  if kind == "string" then return put_text(value) end
  if kind == "number" then return put_number(value, depth) end
  if kind == "nil" then return put("null") end
  if kind == "boolean" then return put(value and "true" or "false") end
  refuse("a " .. kind, depth)
end

local function encode(value)
  nodes, bytes, pieces, path = 0, 0, {}, {}
  write(value, 0)
  local text = concat(pieces)
  pieces = nil
  return text
end

local function array(value)
  if type(value) ~= "table" then error("bad argument #1 to 'array' (table expected, got " .. type(value) .. ")", 2) end
  return setmetatable(value, ARRAY)
end

return arguments, encode, array
