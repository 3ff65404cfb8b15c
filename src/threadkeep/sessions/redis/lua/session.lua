-- The session document, for the scripts that write them; after common.lua.

local function leave_window(s, oldest) -- the messages at the beginning of it
  call('ZREMRANGEBYRANK', WINDOW, 0, #oldest - 1)
  s.floor = math.max(s.floor, tonumber(oldest[#oldest].seq))
  for _, message in ipairs(oldest) do
    if not holds(PENDING, message.seq) then
      call('HDEL', IDS, message.id)
    end
  end
end

local function ending(language)
  return language ~= '' and '],"language":' .. language .. '}' or ']}'
end

-- Add messages to the document where it stands, and blank out the oldest: to take it through Lua and write it anew
-- costs more than the rest of an append. Blanks between messages are JSON; when they are half of it, it is rebuilt.
-- Only while the document is exactly what we left. Answers whether it was done.
local function extended(s, added, head)
  local tail, count = ending(s.shown_lang), call('ZCARD', WINDOW)
  local held, excess = count - #added, count - MAX_MESSAGES
  if not s.live or (held == 0 and s.length > #head + #tail) or MAX_CHARS >= 0 or excess + #added >= MAX_MESSAGES or s.blank > s.length / 2
    or call('STRLEN', DOC) ~= s.length or call('GETRANGE', DOC, 0, #head - 1) ~= head
    or call('GETRANGE', DOC, -#tail, -1) ~= tail then
    return false
  end
  local start = #head + s.blank
  if excess > 0 then
    local oldest, gone = call('ZRANGE', WINDOW, 0, excess - 1), 0
    for i = 1, excess do
      local message = parsed(oldest[i])
      oldest[i], gone = message, gone + #message.fragment + 1
    end
    leave_window(s, oldest)
    call('SETRANGE', DOC, start, string.rep(' ', gone))
    s.blank = s.blank + gone
  end
  local fragments = held > 0 and { '' } or {}
  for _, message in ipairs(added) do
    fragments[#fragments + 1] = message.fragment
  end
  s.length = call('SETRANGE', DOC, s.length - #tail, table.concat(fragments, ',') .. ending(s.lang))
  call('PEXPIRE', DOC, SESSION_TTL)
  return true
end

-- The same from the window itself, trimmed from the oldest.
local function rebuild(s, head)
  local items, fragments, room = call('ZRANGE', WINDOW, 0, -1), {}, MAX_CHARS
  local first = #items + 1
  for i = #items, math.max(1, #items - MAX_MESSAGES + 1), -1 do
    items[i] = parsed(items[i])
    room = room - items[i].chars
    if MAX_CHARS >= 0 and room < 0 and i < #items then
      break
    end
    first = i
  end
  local oldest = {}
  for i = 1, first - 1 do
    oldest[i] = type(items[i]) == 'string' and parsed(items[i]) or items[i]
  end
  if first > 1 then
    leave_window(s, oldest)
  end
  for i = first, #items do
    fragments[#fragments + 1] = items[i].fragment
  end
  s.blank = 0
  local document = head .. table.concat(fragments, ',') .. ending(s.lang)
  s.length = #document
  call('SET', DOC, document, 'PX', SESSION_TTL)
end

-- Trim, write the document, slide the times. `added`: what has just come in at the end, if that is all that changed.
local function write_session(s, added)
  local head = '{"createdAt":' .. s.created .. ',"messages":['
  if not added or not extended(s, added, head) then
    rebuild(s, head)
  end
  call('PEXPIRE', WINDOW, SESSION_TTL)
  call('PEXPIRE', IDS, META_TTL)
  save(s)
end
