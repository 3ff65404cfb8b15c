-- Forget the conversation. The new generation: given, '+1' (raise our own), or '=' (the user's own record was raised).
local s, given = state(), ARGV[OWN + 1]
local live = (s.live or s.odd) and 1 or 0
local messages = purge()
if given ~= '=' then
  local gen = given == '+1' and s.gen + 1 or math.max(s.gen, tonumber(given))
  call('HSET', RECORD, 'gen', whole_number(gen))
end
call('ZREM', CONVERSATIONS, CONVERSATION)
return { 'ok', live, messages }
