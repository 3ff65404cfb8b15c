-- What a consumer that ends has claimed, as if it had been held for too long: the next to claim takes it over.
local STREAM, GROUP, CONSUMER, IDLE = KEYS[1], 'archive', ARGV[1], ARGV[2]
local held = redis.pcall('XPENDING', STREAM, GROUP, '-', '+', 100000, CONSUMER)
if held.err then -- neither stream nor group yet
  return 0
end
for _, entry in ipairs(held) do
  redis.call('XCLAIM', STREAM, GROUP, 'given-back', 0, entry[1], 'IDLE', IDLE, 'JUSTID')
end
return #held
