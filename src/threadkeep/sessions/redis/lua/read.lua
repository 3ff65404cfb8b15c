-- What is hot, in one answer and without the machinery of the writing scripts: this is the most frequent call.
local DOC, META, WINDOW, PENDING, RECORD, USER_RECORD = unpack(KEYS)
local MOST_PENDING = tonumber(ARGV[1]) -- of those that have left the window, the newest so many; all when negative
local call = redis.call

local meta = call('HMGET', META, 'gen', 'seq', 'created', 'lang', 'gap', 'floor', 'seen')
local live = call('TYPE', DOC).ok == 'string'
local gen = math.max(tonumber(meta[1]) or 0, tonumber(call('HGET', RECORD, 'gen')) or 0,
  tonumber(call('HGET', USER_RECORD, 'gen')) or 0)
if live and (not meta[3] or meta[3] == '') then
  return { 'foreign', string.format('%.0f', gen), call('GET', DOC) }
elseif not live and call('EXISTS', PENDING) == 0 then
  return { 'none' }
end

local window, first, waiting = '', '+inf', ''
if live then
  local items = call('ZRANGE', WINDOW, 0, -1)
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
local gap, floor = tonumber(meta[5]) or 0, tonumber(meta[6]) or 0
local this_run = string.match(call('INFO', 'replication'), 'master_replid:(%x+)')
local whole = live and meta[7] == this_run and (gap == 0 or floor > gap)
local head = { live and 1 or 0, whole and 1 or 0, string.format('%.0f', gen), meta[2] or 0, meta[3] or '', meta[4] or '' }
return { 'ok', table.concat(head, '\n'), window, waiting }
