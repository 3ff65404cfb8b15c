-- The ordinary append, by the fewest commands: new ids, no key, a talk that is seeded and was never erased, a document
-- that is exactly as we left it. It leaves what append.lua would leave; whatever is not ordinary goes on to that.
local function ordinary()
  local DOC, WINDOW, PENDING, IDS, TALKS, JOURNAL = KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[11], KEYS[12]
  local call, match, sub = redis.call, string.match, string.sub
  if ARGV[9] ~= '-' or ARGV[10] ~= '' or ARGV[15] ~= '1' or ARGV[4] ~= '-1' or #ARGV < 27 then
    return
  end
  local meta = call('HMGET', META, 'run', 'shown', 'blank', 'index', 'unsure')
  local gen, seq, created, lang, gap, floor, seen, length, writes = match(meta[2] or '',
    '^(%d+)\n(%d+)\n([^\n]+)\n([^\n]*)\n(%d+)\n(%-?%d+)\n([^\n]*)\n(%d+)\n(%d+)$')
  if not gen or meta[5] == '1' or (ARGV[8] ~= '' and ARGV[8] ~= gen)
    or meta[1] ~= match(call('INFO', 'replication'), 'master_replid:(%x+)') or call('HLEN', KEYS[9]) > 0 -- erasures
    or (tonumber(call('HGET', KEYS[10], 'gen')) or 0) > tonumber(gen)
    or call('HEXISTS', IDS, ARGV[22]) == 1 then -- the same call once more, after its answer was lost
    return
  end

  local most, count = tonumber(ARGV[3]), (#ARGV - 21) / 6
  local excess, blank = call('ZCARD', WINDOW) + count - most, tonumber(meta[3]) or 0
  local head = '{"createdAt":' .. created .. ',"messages":['
  local tail = lang ~= '' and '],"language":' .. lang .. '}' or ']}'
  length = tonumber(length)
  if excess + count >= most or redis.pcall('STRLEN', DOC) ~= length
    or call('GETRANGE', DOC, 0, #head - 1) ~= head or call('GETRANGE', DOC, -#tail, -1) ~= tail then
    return
  end
  if blank > length / 2 then -- clear the blanks away
    call('SET', DOC, head .. call('GETRANGE', DOC, #head + blank, -1))
    length, blank = length - blank, 0
  end
  if lang == '' and ARGV[14] ~= '' then
    lang = ARGV[14]
  end

  local last, drafts = tonumber(seq), {}
  local texts, window, pending, index = {}, {}, {}, {}
  local fragments, entries = {}, {}
  for i = 1, count do
    local at = 16 + 6 * i
    last = last + 1
    local number, id, rest, fragment = string.format('%.0f', last), ARGV[at], ARGV[at + 4], ARGV[at + 5]
    local entry = '{"seq":' .. number .. ',' .. rest
    drafts[i] = { id = id, fragment = fragment }
    entries[i], fragments[i], texts[i] = entry .. '}', fragment, entry .. ',' .. sub(fragment, 2)
    local before, after = number .. '\n' .. ARGV[at + 3] .. '\n', '\n' .. id .. '\n' .. rest .. '\n' .. fragment
    window[2 * i - 1], window[2 * i] = number, before .. after
    pending[2 * i - 1], pending[2 * i] = number, { before, after }
    index[2 * i - 1], index[2 * i] = id, number .. '\n' .. ARGV[at + 1]
  end
  seq = string.format('%.0f', last)
  local sid = call('XADD', JOURNAL, '*', 'v', '1', 'scope', ARGV[12], 'generation', gen, 'key', '',
    'payload', ARGV[11], 'receipt', '{"status":"queued","seq":' .. seq .. ',' .. ARGV[13],
    'messages', '[' .. table.concat(texts, ',') .. ']')
  for i = 2, 2 * count, 2 do
    pending[i] = pending[i][1] .. sid .. pending[i][2]
  end

  local skip, META_TTL = 1, math.max(tonumber(ARGV[1]), tonumber(ARGV[2]))
  if excess > 0 then
    local oldest, gone, first = call('ZPOPMIN', WINDOW, excess), 0, nil
    local ids = {}
    for i = 1, 2 * excess, 2 do
      local number, id, rest, at = match(oldest[i], '^(%-?%d+)\n%d+\n\n([^\n]*)\n([^\n]*)\n()')
      first, floor, ids[#ids + 1] = first or number, math.max(floor, number), id
      gone, skip = gone + #oldest[i] - at + 2, skip + 10 + #number + #rest
    end
    local waiting = call('ZCOUNT', PENDING, first, floor)
    for i = 1, waiting < excess and excess or 0 do
      local number = match(oldest[2 * i - 1], '^%-?%d+')
      if waiting == 0 or call('ZCOUNT', PENDING, number, number) == 0 then
        call('HDEL', IDS, ids[i])
      end
    end
    call('SETRANGE', DOC, #head + blank, string.rep(' ', gone))
    blank = blank + gone
  end
  call('ZADD', WINDOW, unpack(window))
  call('ZADD', PENDING, unpack(pending))
  call('HSET', IDS, unpack(index))
  local before = meta[4] ~= '' and meta[4] ~= false
  length = call('SETRANGE', DOC, length - #tail, (before and ',' or '') .. table.concat(fragments, ',')
    .. (lang ~= '' and '],"language":' .. lang .. '}' or ']}'))
  call('PEXPIRE', DOC, ARGV[1])
  call('PEXPIRE', WINDOW, ARGV[1])
  call('PEXPIRE', IDS, META_TTL)

  local shown = table.concat({ gen, seq, created, lang, gap, string.format('%.0f', floor), seen, length,
    string.format('%.0f', writes + 1) }, '\n')
  local whole = (before and sub(meta[4], skip) .. ',' or '') .. table.concat(entries, ',')
  call('HSET', META, 'run', meta[1], 'seq', seq, 'shown', shown, 'blank', blank, 'index', whole,
    'turn', show_turn(turn_after(drafts, 16)))
  call('PEXPIRE', META, META_TTL)
  if call('ZSCORE', TALKS, ARGV[6]) ~= 'inf' then -- a talk with something pending is never left out
    call('ZADD', TALKS, '+inf', ARGV[6])
    call('PERSIST', TALKS)
  end
  return { 'ok', seq, shown }
end

local done = ordinary()
if done then
  return done
end
