local JOURNAL, DEAD = KEYS[1], KEYS[2]
local oldest = redis.call('XRANGE', JOURNAL, '-', '+', 'COUNT', 1)[1]
local claimed = redis.pcall('XPENDING', JOURNAL, 'archive') -- an error while there is no group yet
local time = redis.call('TIME')
local age = 0
if oldest then
  age = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(string.match(oldest[1], '^%d+'))
end
return { redis.call('XLEN', JOURNAL), claimed.err and 0 or claimed[1], redis.call('XLEN', DEAD), math.max(age, 0) }
