-- The archive behind this store has an id for it, and so has the process that appends: where they differ, the store was
-- wiped, detached or given to another archive, and Python finds out which.
local FRONT = ARGV[(ARGV[9] == '-' and 9 or 18) + 7]
local RECORDED = redis.call('HMGET', KEYS[12] .. ':front', 'id', 'missed')
if FRONT ~= '' and RECORDED[1] ~= FRONT then
  return { 'front' }
end

-- The ordinary append, by the fewest commands: new ids, no key, a conversation seeded and never erased, a
-- document exactly as we left it. It leaves what append.lua would leave; anything else is handled by that.
local function ordinary()
  local DOC, WINDOW, PENDING, IDS, CONVERSATIONS, JOURNAL = KEYS[1], KEYS[4], KEYS[5], KEYS[6], KEYS[11], KEYS[12]
  local call, match, format, concat = redis.call, string.match, string.format, table.concat
  if ARGV[9] ~= '-' or ARGV[10] ~= '' or ARGV[15] ~= '1' or ARGV[4] ~= '-1' or #ARGV < 28 then
    return
  end
  local meta = call('HMGET', META, 'run', 'shown', 'blank', 'index', 'unsure')
  local user = call('HMGET', KEYS[10], 'gen', 'texts')
  local gen, seq, created, lang, gap, floor, seen, length, writes = match(meta[2] or '',
    '^(%d+)\n(%d+)\n([^\n]+)\n([^\n]*)\n(%d+)\n(%-?%d+)\n([^\n]*)\n(%d+)\n(%d+)$')
  if not gen or meta[5] == '1' or (meta[4] and meta[4] ~= '') or (ARGV[8] ~= '' and ARGV[8] ~= gen)
    or meta[1] ~= (match(call('INFO', 'replication'), 'master_replid:(%x+)') or '') .. (RECORDED[2] or '')
    or call('HLEN', KEYS[9]) > 0 -- erasures
    or (tonumber(user[1]) or 0) > tonumber(gen) or user[2] -- or the user's
    or call('HEXISTS', IDS, ARGV[23]) == 1 then -- the same call once more, after its answer was lost
    return
  end

  local most, count = tonumber(ARGV[3]), (#ARGV - 22) / 6
  local held, blank = call('ZCARD', WINDOW), tonumber(meta[3]) or 0
  local excess = held + count - most
  local head = '{"createdAt":' .. created .. ',"messages":['
  local tail = lang ~= '' and '],"language":' .. lang .. '}' or ']}'
  length = tonumber(length)
  if excess + count >= most or redis.pcall('STRLEN', DOC) ~= length or (held == 0 and length > #head + #tail)
    or call('GETRANGE', DOC, '0', #head - 1) ~= head or call('GETRANGE', DOC, -#tail, '-1') ~= tail then
    return
  end
  if blank > length / 2 then -- clear the blanks away
    call('SET', DOC, head .. call('GETRANGE', DOC, #head + blank, -1))
    length, blank = length - blank, 0
  end
  if lang == '' and ARGV[14] ~= '' then
    lang = ARGV[14]
  end

  -- Every string that Lua makes is hashed byte by byte: a text is joined once for each key that it goes to.
  local last, drafts, new = tonumber(seq), {}, {}
  local texts, window, pending, known = {}, {}, {}, {}
  for i = 1, count do
    local at, n = 17 + 6 * i, 6 * i - 6
    last = last + 1
    local number, id, rest, fragment = format('%d', last), ARGV[at], ARGV[at + 4], ARGV[at + 5]
    drafts[i] = { id = id, fragment = fragment }
    new[2 * i - 1], new[2 * i] = (i > 1 or held > 0) and ',' or '', fragment
    texts[n + 1], texts[n + 2], texts[n + 3] = i > 1 and ',{"seq":' or '[{"seq":', number, ','
    texts[n + 4], texts[n + 5], texts[n + 6] = rest, ',', string.sub(fragment, 2)
    window[2 * i - 1] = number
    window[2 * i] = number .. '\n' .. ARGV[at + 3] .. '\n\n' .. id .. '\n' .. rest .. '\n' .. fragment
    known[2 * i - 1], known[2 * i] = id, number .. '\n' .. ARGV[at + 1]
  end
  texts[#texts + 1] = ']'
  seq = format('%d', last)
  local sid = call('XADD', JOURNAL, '*', 'v', '1', 'scope', ARGV[12], 'generation', gen, 'key', '',
    'payload', ARGV[11], 'receipt', '{"status":"queued","seq":' .. seq .. ',' .. ARGV[13],
    'messages', concat(texts))
  for i = 1, count do
    local at, number = 17 + 6 * i, window[2 * i - 1]
    pending[2 * i - 1] = number
    pending[2 * i] = number .. '\n' .. ARGV[at + 3] .. '\n' .. sid .. '\n' .. ARGV[at] .. '\n' .. ARGV[at + 4] .. '\n'
      .. ARGV[at + 5]
  end

  if excess > 0 then
    local oldest, gone, first = call('ZPOPMIN', WINDOW, excess), 0, nil
    local ids = {}
    for i = 1, 2 * excess, 2 do
      local number, id, at = match(oldest[i], '^(%-?%d+)\n%d+\n\n([^\n]*)\n[^\n]*\n()')
      first, floor, ids[#ids + 1] = first or number, math.max(floor, number), id
      gone = gone + #oldest[i] - at + 2
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
  call('HSET', IDS, unpack(known))
  new[#new + 1] = lang ~= '' and '],"language":' .. lang .. '}' or ']}'
  length = call('SETRANGE', DOC, length - #tail, concat(new))
  local META_TTL = math.max(tonumber(ARGV[1]), tonumber(ARGV[2]))
  call('PEXPIRE', DOC, ARGV[1])
  call('PEXPIRE', WINDOW, ARGV[1])
  call('PEXPIRE', IDS, META_TTL)

  local shown = concat({ gen, seq, created, lang, gap, format('%d', floor), seen, length, format('%d', writes + 1) },
    '\n')
  call('HSET', META, 'run', meta[1], 'seq', seq, 'shown', shown, 'blank', blank,
    'turn', show_turn(turn_after(drafts, 17)))
  call('PEXPIRE', META, META_TTL)
  if call('ZSCORE', CONVERSATIONS, ARGV[6]) ~= 'inf' then -- one with something pending is always listed
    call('ZADD', CONVERSATIONS, '+inf', ARGV[6])
    call('PERSIST', CONVERSATIONS)
  end
  return { 'ok', seq, shown }
end

local done = ordinary()
if done then
  return done
end
