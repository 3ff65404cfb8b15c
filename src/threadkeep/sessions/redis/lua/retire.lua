-- Forget the names of consumers that have nothing in hand: of one, or of all that have been silent for so long.
local STREAM, GROUP, ONE, SILENT = KEYS[1], 'archive', ARGV[1], tonumber(ARGV[2])
local consumers = redis.pcall('XINFO', 'CONSUMERS', STREAM, GROUP)
if consumers.err then -- neither stream nor group yet
  return 0
end
local retired = 0
for _, fields in ipairs(consumers) do
  local of = {}
  for i = 1, #fields, 2 do
    of[fields[i]] = fields[i + 1]
  end
  if of.pending == 0 and (of.name == ONE or (ONE == '' and of.idle >= SILENT)) then
    redis.call('XGROUP', 'DELCONSUMER', STREAM, GROUP, of.name)
    retired = retired + 1
  end
end
return retired
