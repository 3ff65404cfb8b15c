-- Record which archive stands behind this store, unless one is recorded: id, mode, a digest of the archive's address. And
-- how often that archive stored something of which this store did not hear: a higher count is a new run of the server to
-- every script, so each conversation is compared with the archive before it is used again.
local FRONT = KEYS[1] .. ':front'
if redis.call('EXISTS', FRONT) == 0 then
  redis.call('HSET', FRONT, 'id', ARGV[1], 'durability', ARGV[2], 'archive', ARGV[3])
end
local known = redis.call('HMGET', FRONT, 'id', 'missed')
if known[1] == ARGV[1] and tonumber(ARGV[4]) > (tonumber(known[2]) or 0) then
  redis.call('HSET', FRONT, 'missed', ARGV[4])
end
return 'OK'
