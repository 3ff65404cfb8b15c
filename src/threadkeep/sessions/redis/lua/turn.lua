-- The latest turn, for the scripts that write it; before everything else, and on its own.
--
-- It is kept in ten lines, each JSON or empty: owner, ts, user, its tokens, its id, assistant, its tokens, its id,
-- reflection, its tokens. An earlier version kept a hash.

local LATEST, TURN, LATEST_TTL = KEYS[2], KEYS[7], ARGV[2]
local FIELDS = { 'owner', 'ts', 'user', 'user_tokens', 'user_id', 'assistant', 'assistant_tokens', 'assistant_id',
  'reflection', 'reflection_tokens' }
local LINES = '^' .. string.rep('([^\n]*)\n', 9) .. '([^\n]*)$'

local function turn_kept()
  local kept, turn = redis.pcall('GET', TURN), {}
  local parts = {}
  if type(kept) == 'string' then
    parts = { string.match(kept, LINES) }
  elseif kept then
    parts = redis.pcall('HMGET', TURN, unpack(FIELDS))
  end
  for i, field in ipairs(FIELDS) do
    turn[field] = parts[i] or ''
  end
  return turn
end

local function or_else(part, default)
  return part ~= '' and part or default
end

local function keep_turn(t)
  redis.call('SET', TURN, table.concat({ t.owner, t.ts, t.user, t.user_tokens, t.user_id, t.assistant,
    t.assistant_tokens, t.assistant_id, t.reflection, t.reflection_tokens }, '\n'), 'PX', LATEST_TTL)
  redis.call('SET', LATEST, table.concat({ '{"user_msg":', or_else(t.user, 'null'), ',"assistant_msg":',
    or_else(t.assistant, 'null'), ',"reflection":', or_else(t.reflection, 'null'), ',"token_data":{"user":',
    or_else(t.user_tokens, '[]'), ',"assistant":', or_else(t.assistant_tokens, '[]'), ',"reflection":',
    or_else(t.reflection_tokens, '[]'), '},"user_id":', t.owner, ',"ts":', t.ts, '}' }), 'PX', LATEST_TTL)
end

local function content_of(fragment) -- as JSON; no quote stands in it unescaped
  local first = string.find(fragment, '"content":', 1, true) + 10
  return string.sub(fragment, first, string.find(fragment, ',"ts":"', -50, true) - 1)
end

-- A new user message begins a turn; an answer completes the one at hand. Six arguments, beginning with the i-th: which
-- of the messages is the user's ('' is none) and its tokens, the same of the answer, whose it is, when.
local function write_turn(messages, i)
  local user, assistant = messages[tonumber(ARGV[i])], messages[tonumber(ARGV[i + 2])]
  local t = user and { assistant = '', assistant_tokens = '', assistant_id = '' } or turn_kept()
  if user then
    t.user, t.user_tokens, t.user_id = content_of(user.fragment), ARGV[i + 1], user.id
  end
  if assistant then
    t.assistant, t.assistant_tokens, t.assistant_id = content_of(assistant.fragment), ARGV[i + 3], assistant.id
  end
  t.owner, t.ts, t.reflection, t.reflection_tokens = ARGV[i + 4], ARGV[i + 5], '', '' -- it was about another answer
  keep_turn(t)
end
