-- The latest turn, for the scripts that write it; after common.lua.
--
-- Readers see it as one document. `turn` in META says where in it each part stands, and of which messages they are:
-- the ids of the user's and of the assistant's, and the length of each part, a line each.

local PARTS = { 'user', 'assistant', 'reflection', 'user_tokens', 'assistant_tokens', 'reflection_tokens', 'owner',
  'ts' }
local BEFORE = { '{"user_msg":', ',"assistant_msg":', ',"reflection":', ',"token_data":{"user":', ',"assistant":',
  ',"reflection":', '},"user_id":', ',"ts":' }
local NONE = { 'null', 'null', 'null', '[]', '[]', '[]', 'null', '0' }
local WHERE = '^([^\n]*)\n([^\n]*)' .. string.rep('\n(%d+)', 8) .. '$'

-- An earlier version kept the parts in a hash of their own.
local function turn_in_hash(turn)
  local parts = redis.pcall('HMGET', TURN, 'user_id', 'assistant_id', unpack(PARTS))
  turn.user_id, turn.assistant_id = parts[1] or '', parts[2] or ''
  for i, name in ipairs(PARTS) do
    turn[name] = parts[i + 2] or ''
  end
  turn.readable, turn.in_hash = turn.owner ~= '', true
  return turn
end

-- Of a document that is not as we left it only the ids are known: its parts are empty then, and it is not `readable`.
local function turn_kept()
  local turn, where = {}, { string.match(call('HGET', META, 'turn') or '', WHERE) }
  if not where[1] then
    return turn_in_hash(turn)
  end
  local document, at = redis.pcall('GET', LATEST), 1
  turn.readable, turn.user_id, turn.assistant_id = type(document) == 'string', where[1], where[2]
  for i, name in ipairs(PARTS) do
    local first = at + #BEFORE[i]
    turn.readable = turn.readable and sub(document, at, first - 1) == BEFORE[i]
    at = first + where[i + 2]
    turn[name] = turn.readable and sub(document, first, at - 1) or ''
    if turn[name] == NONE[i] then
      turn[name] = ''
    end
  end
  turn.readable = turn.readable and at == #document and sub(document, at) == '}'
  for _, name in ipairs(turn.readable and {} or PARTS) do
    turn[name] = ''
  end
  return turn
end

local function keep_turn(turn)
  local pieces, where = {}, { turn.user_id, turn.assistant_id }
  for i, name in ipairs(PARTS) do
    local part = turn[name] ~= '' and turn[name] or NONE[i]
    pieces[2 * i - 1], pieces[2 * i], where[i + 2] = BEFORE[i], part, #part
  end
  pieces[17] = '}'
  call('SET', LATEST, table.concat(pieces), 'PX', LATEST_TTL)
  if call('HSET', META, 'turn', table.concat(where, '\n')) == 1 and call('PTTL', META) < 0 then
    call('PEXPIRE', META, LATEST_TTL)
  end
end

local function content_of(fragment) -- as JSON; no quote stands in it unescaped
  local first = find(fragment, '"content":', 1, true) + 10
  return sub(fragment, first, find(fragment, ',"ts":"', -50, true) - 1)
end

-- A new user message begins a turn; an answer completes the one at hand. Six arguments, beginning with the i-th: which
-- of the messages is the user's ('' is none) and its tokens, the same of the answer, whose it is, when.
local function turn_after(messages, i)
  local user, assistant = messages[tonumber(ARGV[i])], messages[tonumber(ARGV[i + 2])]
  local turn = user and { assistant = '', assistant_tokens = '', assistant_id = '' } or turn_kept()
  if user then
    turn.user, turn.user_tokens, turn.user_id = content_of(user.fragment), ARGV[i + 1], user.id
  elseif not turn.readable then
    turn.user_id = ''
  end
  if assistant then
    turn.assistant, turn.assistant_tokens = content_of(assistant.fragment), ARGV[i + 3]
    turn.assistant_id = assistant.id
  end
  turn.owner, turn.ts = ARGV[i + 4], ARGV[i + 5]
  turn.reflection, turn.reflection_tokens = '', '' -- it was about another answer
  return turn
end
