-- Entries of a stream for one consumer: first what another has held for too long, then what is new, then what was
-- handed out and no consumer has: one was deleted by hand, or a log that was cut inside a transaction came back by
-- halves at the next restart.
local STREAM, GROUP = KEYS[1], 'archive'
local CONSUMER, COUNT, IDLE, CURSOR = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local function with_group(...) -- the group goes with a wipe; from 0, so that nothing is passed over
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err and string.find(answer.err, 'NOGROUP', 1, true) then
    redis.call('XGROUP', 'CREATE', STREAM, GROUP, '0', 'MKSTREAM')
    return redis.call(...)
  elseif type(answer) == 'table' and answer.err then
    return redis.call(...) -- raises it
  end
  return answer
end

local claimed = with_group('XAUTOCLAIM', STREAM, GROUP, CONSUMER, IDLE, CURSOR, 'COUNT', COUNT)
local entries = claimed[2]
if #entries < COUNT then
  local new = redis.call('XREADGROUP', 'GROUP', GROUP, CONSUMER, 'COUNT', COUNT - #entries, 'STREAMS', STREAM, '>')
  for _, entry in ipairs(new and new[1][2] or {}) do
    entries[#entries + 1] = entry
  end
end
local held = #entries == 0 and redis.call('XPENDING', STREAM, GROUP)[1]
if held and redis.call('XLEN', STREAM) > held then
  for _, entry in ipairs(redis.call('XRANGE', STREAM, '-', '+', 'COUNT', held + COUNT)) do
    if #entries < COUNT and #redis.call('XPENDING', STREAM, GROUP, entry[1], entry[1], 1) == 0 then
      redis.call('XCLAIM', STREAM, GROUP, CONSUMER, 0, entry[1], 'FORCE', 'JUSTID')
      entries[#entries + 1] = entry
    end
  end
end
local last = redis.call('XINFO', 'STREAM', STREAM)
for i = 1, #last, 2 do
  if last[i] == 'last-generated-id' then
    return { entries, claimed[1], last[i + 1] }
  end
end
return { entries, claimed[1], '0-0' }
