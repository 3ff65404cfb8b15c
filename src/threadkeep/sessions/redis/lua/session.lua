-- The session document, for the scripts that write one; after common.lua.

-- Trim the window from its oldest, show what is left as the document, slide the times.
local function write_session(s)
  local messages = {}
  for i, item in ipairs(call('ZRANGE', WINDOW, 0, -1)) do
    messages[i] = parsed(item)
  end
  local first, room = #messages + 1, MAX_CHARS
  for i = #messages, math.max(1, #messages - MAX_MESSAGES + 1), -1 do
    room = room - messages[i].chars
    if MAX_CHARS >= 0 and room < 0 and i < #messages then
      break
    end
    first = i
  end
  if first > 1 then
    call('ZREMRANGEBYRANK', WINDOW, 0, first - 2)
    s.floor = math.max(s.floor, tonumber(messages[first - 1].seq))
  end
  for i = 1, first - 1 do
    forget_id(messages[i])
  end

  local fragments = {}
  for i = first, #messages do
    fragments[#fragments + 1] = messages[i].fragment
  end
  local language = s.lang ~= '' and ',"language":' .. s.lang or ''
  local document = '{"createdAt":' .. s.created .. ',"messages":[' .. table.concat(fragments, ',') .. ']' .. language .. '}'
  s.length = #document
  call('SET', DOC, document, 'PX', SESSION_TTL)
  call('HDEL', META, 'blank') -- earlier versions blank out messages that leave, and count the blanks
  call('PEXPIRE', WINDOW, SESSION_TTL)
  call('PEXPIRE', IDS, META_TTL)
  save(s)
end
