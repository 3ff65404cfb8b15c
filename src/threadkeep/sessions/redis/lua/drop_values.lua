-- KEYS[1] is the index, the others are values that stand in it. How many there were.
local removed = 0
for i = 2, #KEYS do
  removed = removed + redis.call('DEL', KEYS[i])
  redis.call('ZREM', KEYS[1], KEYS[i])
end
return removed
