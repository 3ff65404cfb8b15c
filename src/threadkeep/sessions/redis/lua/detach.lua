-- 'begin': appends are refused from now on, unless something waits; answers how many entries and dead letters do.
-- 'undo': as if it had not begun. 'end': no archive stands behind this store any more.
local JOURNAL, DEAD, FRONT = KEYS[1], KEYS[2], KEYS[1] .. ':front'
local call, id = redis.call, redis.call('HGET', KEYS[1] .. ':front', 'id')
if ARGV[1] == 'end' then
  call('DEL', FRONT)
elseif ARGV[1] == 'undo' then
  if id and string.sub(id, 1, 1) == '-' then
    call('HSET', FRONT, 'id', string.sub(id, 2))
  end
else
  local waiting, dead = call('XLEN', JOURNAL), call('XLEN', DEAD)
  if waiting + dead > 0 then -- also where an earlier version queued them, which recorded no archive
    return { waiting, dead }
  end
  if id and string.sub(id, 1, 1) ~= '-' then
    call('HSET', FRONT, 'id', '-' .. id)
  end
end
return { 0, 0 }
