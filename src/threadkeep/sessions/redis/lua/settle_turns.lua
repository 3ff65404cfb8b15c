-- Turns that are stored, or given up on: the latter are copied aside with the reason first.
local QUEUE, DEAD, GROUP, REASON = KEYS[1], KEYS[2], 'archive', ARGV[1]
local settled = 0
for i = 2, #ARGV do
  local entry = redis.call('XRANGE', QUEUE, ARGV[i], ARGV[i])[1]
  if entry and REASON ~= '' then
    redis.call('XADD', DEAD, '*', 'reason', REASON, unpack(entry[2]))
  end
  redis.call('XACK', QUEUE, GROUP, ARGV[i])
  settled = settled + redis.call('XDEL', QUEUE, ARGV[i])
end
return settled
