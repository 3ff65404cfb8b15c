-- The latest turn of a conversation, if what stands there is what the caller has seen: it knows whose that is.
local held = redis.call('GET', KEYS[1])
local seen = held and redis.sha1hex(held) or ''
if seen ~= ARGV[1] then
  return { 'other', held or '' }
end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return { 'kept' }
