-- Between the journal and the dead letters: 'park' (with a reason and a time), 'replay', 'drop'.
local ACTION, ID, REASON, MOMENT = ARGV[OWN + 1], ARGV[OWN + 2], ARGV[OWN + 3], ARGV[OWN + 4]
local parking = ACTION == 'park'
local from, old = parking and JOURNAL or DEAD, parking and ID or '!' .. ID

local entry = call('XRANGE', from, ID, ID)[1]
if not entry then
  return { 'gone' }
end
local new = nil
if parking then
  local fields = entry[2]
  fields[#fields + 1], fields[#fields + 2] = 'reason', REASON
  fields[#fields + 1], fields[#fields + 2] = 'parked', MOMENT
  new = '!' .. call('XADD', DEAD, '*', unpack(fields))
elseif ACTION == 'replay' then
  local fields = {}
  for i = 1, #entry[2], 2 do
    if entry[2][i] ~= 'reason' and entry[2][i] ~= 'parked' then
      fields[#fields + 1], fields[#fields + 2] = entry[2][i], entry[2][i + 1]
    end
  end
  new = call('XADD', JOURNAL, '*', unpack(fields))
end
withdraw(old)
local waiting = {}
if #ARGV < OWN + 5 then -- its numbers could not be read
  waiting = call('ZRANGE', PENDING, 0, -1)
end
for i = OWN + 5, #ARGV do
  for _, item in ipairs(call('ZRANGEBYSCORE', PENDING, ARGV[i], ARGV[i])) do
    waiting[#waiting + 1] = item
  end
end
for _, item in ipairs(waiting) do
  local message = parsed(item)
  if message.sid == old then
    call('ZREM', PENDING, item)
    if new then
      call('ZADD', PENDING, message.seq, item_of(message, new))
    else
      forget_id(message)
    end
  end
end
if call('ZSCORE', CONVERSATIONS, CONVERSATION) then
  note_conversation(call('EXISTS', PENDING) == 1)
end
return { 'ok' }
