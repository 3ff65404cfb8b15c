-- Messages that the archive has placed enter the window, each at its own seq; never the journal, never pending.
local TURN_AT, MESSAGES_AT = OWN + 2, OWN + 8
local LANGUAGE = ARGV[OWN + 1]

-- The archive was put back to an earlier day, and contradicts a window that is but a copy of it: the window goes.
local function let_go(why)
  if call('EXISTS', PENDING) == 0 then
    call('DEL', DOC, LATEST, META, WINDOW, IDS, TURN)
  end
  return { why }
end

local s = state()
if is_erased(s) then
  return let_go('erased')
end
local messages, stones = {}, {}
for i = MESSAGES_AT, #ARGV, 7 do
  messages[#messages + 1] = {
    seq = ARGV[i], id = ARGV[i + 1], digest = ARGV[i + 2], chars = ARGV[i + 4], head = ARGV[i + 5],
    fragment = ARGV[i + 6]
  }
  stones[#stones + 1] = ARGV[i + 3]
end
local erased = tombstones(s, stones)
if #erased > 0 then
  return { 'tombstones', table.concat(erased, ' ') }
end
local asked = question(s, false, true)
if asked then
  return asked
end
if GIVEN and GIVEN > s.gen and s.known_gen then -- erased while this store was down: this is of an older generation
  purge()
  s.seq, s.gap, s.floor, s.live, s.created, s.lang, s.run, s.seen = 0, 0, 0, false, false, '', '', ''
end
s.gen = math.max(s.gen, GIVEN or 0)

local fresh = {}
for _, message in ipairs(messages) do
  local have = call('HGET', IDS, message.id)
  if have and string.match(have, '\n(.*)$') ~= message.digest then
    return let_go('other-content')
  elseif not have then
    for _, key in ipairs({ WINDOW, PENDING }) do
      for _, item in ipairs(call('ZRANGEBYSCORE', key, message.seq, message.seq)) do
        if parsed(item).id ~= message.id then
          return let_go('other-message')
        end
      end
    end
    fresh[#fresh + 1] = message
  end
end

prepare(s)
for _, message in ipairs(fresh) do
  local seq = tonumber(message.seq)
  call('ZADD', WINDOW, seq, item_of(message, ''))
  call('HSET', IDS, message.id, message.seq .. '\n' .. message.digest)
  if seq > s.seq then
    if seq > s.seq + 1 or s.seen ~= s.this_run then
      s.gap = seq - 1 -- something before it has not come by here
    end
    s.seq, s.seen = seq, s.this_run
  end
end
s.lang = s.lang ~= '' and s.lang or LANGUAGE
if #fresh > 0 then
  keep_turn(turn_after(messages, TURN_AT))
end
write_session(s)
note_conversation(call('EXISTS', PENDING) == 1)
return { 'ok' }
