-- One encrypted value with its own TTL, noted among the values of its user so that an erase finds it.
local value, index, ttl = KEYS[1], KEYS[2], tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('SET', value, ARGV[1], 'PX', ttl)
redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('%.0f', now))
redis.call('ZADD', index, string.format('%.0f', now + ttl), value)
local last = redis.call('ZRANGE', index, -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', index, string.format('%.0f', tonumber(last)))
return 'ok'
