-- Raise the user's generation in this partition; return the conversations that are hot here.
local record, conversations, given = KEYS[1], KEYS[2], ARGV[1]
local gen = tonumber(redis.call('HGET', record, 'gen')) or 0
gen = given == '+1' and gen + 1 or math.max(gen, tonumber(given))
redis.call('HSET', record, 'gen', string.format('%.0f', gen))
return redis.call('ZRANGE', conversations, 0, -1)
