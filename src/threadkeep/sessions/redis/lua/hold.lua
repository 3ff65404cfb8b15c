-- Take a claim, or hold on to it, or give it back (no time). Whether it was the holder's to do so.
local holder, ttl = ARGV[1], tonumber(ARGV[2])
local held_by = redis.call('GET', KEYS[1])
if held_by and held_by ~= holder then
  return 0
end
if ttl == 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], holder, 'PX', ttl)
end
return 1
