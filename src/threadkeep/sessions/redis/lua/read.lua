-- What is hot, in one answer and without the machinery of the writing scripts.
local DOC, META, WINDOW, PENDING, RECORD, USER_RECORD, FRONT = unpack(KEYS)
local MOST_PENDING = tonumber(ARGV[1]) -- of those that have left the window, the newest so many; all when negative
local call = redis.call

local gen, seq, created, lang, gap, floor, seen = string.match(call('HGET', META, 'shown') or '',
  '^(%d+)\n(%d+)\n([^\n]*)\n([^\n]*)\n(%d+)\n(%-?%d+)\n([^\n]*)\n')
local live = call('TYPE', DOC).ok == 'string'
gen = math.max(tonumber(gen) or 0, tonumber(call('HGET', RECORD, 'gen')) or 0,
  tonumber(call('HGET', USER_RECORD, 'gen')) or 0)
if live and (not created or created == '') then
  return { 'foreign', string.format('%.0f', gen), call('GET', DOC) }
elseif not live and call('EXISTS', PENDING) == 0 then
  return { 'none' }
end

local window, first, waiting, items = '', '+inf', '', {}
if live then
  items = call('ZRANGE', WINDOW, 0, -1)
  window = table.concat(items, '\n')
  first = items[1] and '(' .. string.match(items[1], '^%-?%d+') or first
end
if MOST_PENDING ~= 0 then
  local newest, ordered = call('ZREVRANGEBYSCORE', PENDING, first, '-inf', 'LIMIT', 0, MOST_PENDING), {}
  for i = #newest, 1, -1 do
    ordered[#ordered + 1] = newest[i]
  end
  waiting = table.concat(ordered, '\n')
end
local this_run = (string.match(call('INFO', 'replication'), 'master_replid:(%x+)') or '')
  .. (call('HGET', FRONT, 'missed') or '') -- as in common.lua
local missing = #items == 0 and tonumber(seq or 0) > math.max(tonumber(gap or 0), tonumber(floor or 0)) -- evicted?
local whole = live and seen == this_run and (gap == '0' or tonumber(floor) > tonumber(gap)) and not missing
local stale = (seen or '') ~= '' and seen ~= this_run
local head = { live and 1 or 0, whole and 1 or 0, stale and 1 or 0, string.format('%.0f', gen), seq or 0, created or '',
  lang or '' }
return { 'ok', table.concat(head, '\n'), window, waiting }
