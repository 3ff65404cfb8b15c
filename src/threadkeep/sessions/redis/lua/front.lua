-- Record which archive stands behind this store, unless one is recorded: id, mode, a digest of the archive's address.
local FRONT = KEYS[1] .. ':front'
if redis.call('EXISTS', FRONT) == 0 then
  redis.call('HSET', FRONT, 'id', ARGV[1], 'durability', ARGV[2], 'archive', ARGV[3])
end
return 'OK'
