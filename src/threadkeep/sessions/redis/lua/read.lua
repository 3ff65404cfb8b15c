-- What is hot, in one answer. Writes nothing.
local MOST_PENDING = tonumber(ARGV[OWN + 1]) -- of those that have left the window, the newest so many; all when negative

local s = state()
if s.foreign then
  return { 'foreign', whole_number(s.gen), call('GET', DOC) }
elseif not s.live and call('EXISTS', PENDING) == 0 then
  return { 'none' }
end

local items = s.live and call('ZRANGE', WINDOW, 0, -1) or {}
local first = items[1] and '(' .. parsed(items[1]).seq or '+inf'
local waiting = {}
if MOST_PENDING ~= 0 then
  local newest = call('ZREVRANGEBYSCORE', PENDING, first, '-inf', 'LIMIT', 0, MOST_PENDING)
  for i = #newest, 1, -1 do
    waiting[#waiting + 1] = newest[i]
  end
end
local evicted = #items == 0 and s.seq > math.max(s.gap, s.floor)
local whole = s.live and s.seen == s.this_run and (s.gap == 0 or s.floor > s.gap) and not evicted
local head = { s.live and 1 or 0, whole and 1 or 0, s.stale and 1 or 0, whole_number(s.gen), whole_number(s.seq),
  s.created or '', s.lang }
return { 'ok', table.concat(head, '\n'), table.concat(items, '\n'), table.concat(waiting, '\n') }
