-- A time for the next turn, in microseconds: later than the one before it, whatever the clocks say.
local now, last = tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[1]) or '0')
if last >= now then
  now = last + 1
end
local moment = string.format('%.0f', now)
redis.call('SET', KEYS[1], moment, 'PX', ARGV[2])
return moment
