-- One conversation leaves with its archive: the documents that readers see, and the counter that says whose they are.
-- A session document that another application wrote and that was never taken over stays, and so does a latest turn of
-- another form. Nothing is removed while entries wait in this partition. Answers whether the conversation was hot.
local JOURNAL, DEAD, DOC, LATEST, META = unpack(KEYS)
local call = redis.call
if call('XLEN', JOURNAL) + call('XLEN', DEAD) > 0 then
  return 0
end
local shown, turn = unpack(call('HMGET', META, 'shown', 'turn'))
local created = string.match(shown or '', '^%d+\n%d+\n([^\n]*)')
if created and created ~= '' then
  call('DEL', DOC)
end
local ours = call('TYPE', LATEST).ok == 'string' and call('GETRANGE', LATEST, 0, 11) == '{"user_msg":'
if turn or ours then
  call('DEL', LATEST)
end
return call('DEL', META)
