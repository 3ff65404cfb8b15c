-- Remove these keys, unless entries wait in this partition. Answers whether it was done.
local JOURNAL, DEAD = KEYS[1], KEYS[2]
if redis.call('XLEN', JOURNAL) + redis.call('XLEN', DEAD) > 0 then
  return 0
end
for i = 3, #KEYS do
  redis.call('UNLINK', KEYS[i])
end
return 1
