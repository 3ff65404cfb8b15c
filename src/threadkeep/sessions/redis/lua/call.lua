-- A window that moves: the moments of the latest calls, newest first, no more than are allowed in its span.
-- Counts this call and answers 0, or answers how many milliseconds are left until the next one may come.
local key, most, span = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local oldest = redis.call('LINDEX', key, most - 1)
if oldest and tonumber(oldest) > now - span then
  return tonumber(oldest) + span - now
end
redis.call('LPUSH', key, string.format('%.0f', now))
redis.call('LTRIM', key, 0, most - 1)
redis.call('PEXPIRE', key, span)
return 0
