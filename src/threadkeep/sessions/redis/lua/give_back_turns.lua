-- What a worker that ends has in hand, as if it had been held for too long: whoever asks next takes it over.
local QUEUE, GROUP, CONSUMER, IDLE = KEYS[1], 'archive', ARGV[1], ARGV[2]
local held = redis.pcall('XPENDING', QUEUE, GROUP, '-', '+', 100000, CONSUMER)
if held.err then -- neither stream nor group yet
  return 0
end
for _, entry in ipairs(held) do
  redis.call('XCLAIM', QUEUE, GROUP, 'given-back', 0, entry[1], 'IDLE', IDLE, 'JUSTID')
end
return #held
