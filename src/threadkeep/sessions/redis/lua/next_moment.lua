-- A time for the next turn, in microseconds: later than the one before it, whatever the clocks say. Beside it stands
-- which turn it was given to.
local now, last = tonumber(ARGV[1]), tonumber(string.match(redis.call('GET', KEYS[1]) or '0', '^%d+') or '0')
if last >= now then
  now = last + 1
end
local moment = string.format('%.0f', now)
redis.call('SET', KEYS[1], moment .. ' ' .. ARGV[3], 'PX', ARGV[2])
return moment
