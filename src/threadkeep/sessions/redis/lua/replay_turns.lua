-- Turns that were given up on, once more into the queue.
local DEAD, QUEUE = KEYS[1], KEYS[2]
local entries = redis.call('XRANGE', DEAD, '-', '+', 'COUNT', ARGV[1])
for _, entry in ipairs(entries) do
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'record' then
      redis.call('XADD', QUEUE, '*', 'record', entry[2][i + 1])
    end
  end
  redis.call('XDEL', DEAD, entry[1])
end
return #entries
