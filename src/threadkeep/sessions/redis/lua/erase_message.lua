-- Forget one message, wherever it stands, and leave a tombstone, unless it is empty: what has aged out was not erased.
-- The rest of its journal entry is kept.
local ID, STONE = ARGV[OWN + 1], ARGV[OWN + 2]

local function rewrite(sid, rest)
  local stream, id, dead = entry_at(sid)
  local entry = call('XRANGE', stream, id, id)[1]
  withdraw(sid)
  if not entry or #rest == 0 then
    return sid
  end
  local fields, texts = entry[2], {}
  for i, message in ipairs(rest) do
    texts[i] = in_journal(message)
  end
  for i = 1, #fields, 2 do
    if fields[i] == 'messages' then
      fields[i + 1] = '[' .. table.concat(texts, ',') .. ']'
    end
  end
  return (dead and '!' or '') .. call('XADD', stream, '*', unpack(fields))
end

local s = state()
if STONE ~= '' then
  call('HSET', RECORD, STONE, 1)
end
local have = call('HGET', IDS, ID)
local in_window, waiting = 0, 0
for _, item in ipairs(call('ZRANGE', WINDOW, 0, -1)) do -- one that came with another's document has no entry in IDS
  if parsed(item).id == ID then
    in_window = in_window + call('ZREM', WINDOW, item)
  end
end
local sid, rest = nil, {}
local pending = have and call('ZRANGE', PENDING, 0, -1) or {}
for _, item in ipairs(pending) do
  local message = parsed(item)
  if message.id == ID then
    sid = message.sid
    waiting = waiting + call('ZREM', PENDING, item)
  end
end
if sid then
  for _, item in ipairs(pending) do
    local message = parsed(item)
    if message.sid == sid and message.id ~= ID then
      rest[#rest + 1] = message
      call('ZREM', PENDING, item)
    end
  end
  local moved = rewrite(sid, rest)
  for _, message in ipairs(rest) do
    call('ZADD', PENDING, message.seq, item_of(message, moved))
  end
end
call('HDEL', IDS, ID)
local turn = turn_kept()
local asked, answered = turn.user_id == ID, turn.assistant_id == ID
if asked then
  turn.user, turn.user_tokens, turn.user_id = '', '', ''
end
if answered then
  turn.assistant, turn.assistant_tokens, turn.assistant_id, turn.reflection, turn.reflection_tokens = '', '', '', '', ''
end
if (asked or answered) and turn.readable then
  keep_turn(turn)
elseif asked or answered then
  call('DEL', LATEST) -- whatever stands there
end
if asked or answered or not turn.in_hash then
  call('DEL', TURN)
end
if s.live and s.created and in_window > 0 then
  s.gap = math.max(s.gap, s.floor) -- there is room now for one that the window no longer has
  local left = call('PTTL', DOC)
  write_session(s)
  call('PEXPIRE', DOC, left) -- forgetting is no sign of life
  call('PEXPIRE', WINDOW, left)
end
return { 'ok', in_window, waiting }
