-- A message that stands in the window, as the archive has it by now. No sign of life.
local SEQ, ID = ARGV[OWN + 1], ARGV[OWN + 2]
local s = state()
if is_erased(s) then
  return { 'erased' }
end
for _, item in ipairs(call('ZRANGEBYSCORE', WINDOW, SEQ, SEQ)) do
  local there = parsed(item)
  if s.live and s.created and there.id == ID then
    there.chars, there.head, there.fragment = ARGV[OWN + 5], ARGV[OWN + 6], ARGV[OWN + 7]
    call('ZREM', WINDOW, item)
    call('ZADD', WINDOW, SEQ, item_of(there, there.sid))
    local left = call('PTTL', DOC)
    write_session(s)
    call('PEXPIRE', DOC, left)
    call('PEXPIRE', WINDOW, left)
    return { 'ok' }
  end
end
return { 'absent' }
