-- Turns for one worker: first what another has held for too long, then what nobody has had yet, then what was handed out
-- and is in nobody's hands (see claim.lua).
local QUEUE, GROUP = KEYS[1], 'archive'
local CONSUMER, COUNT, IDLE, CURSOR = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local made = redis.pcall('XGROUP', 'CREATE', QUEUE, GROUP, '0', 'MKSTREAM')
if made.err and not string.find(made.err, 'BUSYGROUP', 1, true) then
  return made
end
local claimed = redis.call('XAUTOCLAIM', QUEUE, GROUP, CONSUMER, IDLE, CURSOR, 'COUNT', COUNT)
local entries = claimed[2]
if #entries < COUNT then
  local new = redis.call('XREADGROUP', 'GROUP', GROUP, CONSUMER, 'COUNT', COUNT - #entries, 'STREAMS', QUEUE, '>')
  for _, entry in ipairs(new and new[1][2] or {}) do
    entries[#entries + 1] = entry
  end
end
local held = #entries == 0 and redis.call('XPENDING', QUEUE, GROUP)[1]
if held and redis.call('XLEN', QUEUE) > held then
  for _, entry in ipairs(redis.call('XRANGE', QUEUE, '-', '+', 'COUNT', held + COUNT)) do
    if #entries < COUNT and #redis.call('XPENDING', QUEUE, GROUP, entry[1], entry[1], 1) == 0 then
      redis.call('XCLAIM', QUEUE, GROUP, CONSUMER, 0, entry[1], 'FORCE', 'JUSTID')
      entries[#entries + 1] = entry
    end
  end
end
return { entries, claimed[1] }
