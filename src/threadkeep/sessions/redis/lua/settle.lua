-- Entries that are in the archive now: acknowledged, deleted, and their own messages no longer pending.
-- A message is identified by its seq *and* its entry: after an erase the same seq may stand for another one.
local i = OWN + 1
while i <= #ARGV do
  local sid, count = ARGV[i], tonumber(ARGV[i + 1])
  withdraw(sid)
  for j = i + 2, i + 1 + count do
    for _, item in ipairs(call('ZRANGEBYSCORE', PENDING, ARGV[j], ARGV[j])) do
      local message = parsed(item)
      if message.sid == sid then
        call('ZREM', PENDING, item)
        forget_id(message)
      end
    end
  end
  i = i + 2 + count
end
if call('ZSCORE', CONVERSATIONS, CONVERSATION) then
  note_conversation(call('EXISTS', PENDING) == 1)
end
return { 'ok' }
