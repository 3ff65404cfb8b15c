-- Whether an append could be written here. The first line of the script makes the server refuse it where it refuses
-- every write (a replica, no memory, no disk), and users without rights on these keys; the rest checks the commands.
local JOURNAL = KEYS[12]
for _, command in ipairs({
  { 'XADD', JOURNAL, '*', 'v', '1' }, { 'XDEL', JOURNAL, '0-1' }, { 'XACK', JOURNAL, 'archive', '0-1' },
  { 'XAUTOCLAIM', JOURNAL, 'archive', 'worker', '0', '0-0' }, { 'HSET', KEYS[3], 'run', '' },
  { 'ZADD', KEYS[4], '1', '' }, { 'SET', KEYS[1], '' }, { 'DEL', KEYS[1] }, { 'PEXPIRE', KEYS[3], '1' }, { 'INFO' }
}) do
  if not redis.acl_check_cmd(unpack(command)) then
    return redis.error_reply('NOPERM ' .. command[1])
  end
end
return 'OK'
