-- The reflection on a turn, which comes later: into the latest turn, while that is still the one. No TTL is slid.
local ABOUT, REFLECTION, TOKENS = ARGV[OWN + 1], ARGV[OWN + 2], ARGV[OWN + 3]
if is_erased(state()) then
  return { 'erased' }
end
local left = call('PTTL', LATEST)
local turn = turn_kept()
if left < 0 or not turn.readable or (turn.user_id ~= ABOUT and turn.assistant_id ~= ABOUT) then
  return { 'other' }
end
turn.reflection, turn.reflection_tokens = REFLECTION, TOKENS
keep_turn(turn)
call('PEXPIRE', LATEST, left)
return { 'ok' }
