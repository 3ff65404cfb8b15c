-- What a turn meant, told later: into the latest turn, while that is still the one it is about. No sign of life.
local ABOUT, REFLECTION, TOKENS = ARGV[OWN + 1], ARGV[OWN + 2], ARGV[OWN + 3]
if is_erased(state()) then
  return { 'erased' }
end
local left = call('PTTL', LATEST)
local turn = call('HMGET', TURN, 'user_id', 'assistant_id')
if left < 0 or (turn[1] ~= ABOUT and turn[2] ~= ABOUT) then
  return { 'other' }
end
call('HSET', TURN, 'reflection', REFLECTION, 'reflection_tokens', TOKENS)
write_latest()
call('PEXPIRE', LATEST, left)
call('PEXPIRE', TURN, left)
return { 'ok' }
