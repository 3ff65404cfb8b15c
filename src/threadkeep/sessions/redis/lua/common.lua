-- Shared by every script on one conversation. Nothing here decodes JSON: Python encodes each value, we join strings.
--
-- An item is one message in six lines: seq, characters, journal id, id, head, fragment. The last three are JSON, which
-- holds no raw line ends. The fragment is the message as the session document shows it; head holds its other fields.
-- The journal id is empty in the window; in pending it says where the message waits ("!" before it: a dead letter).

local DOC, LATEST, META, WINDOW, PENDING, IDS, TURN, RECEIPTS, RECORD, USER_RECORD, CONVERSATIONS, JOURNAL, DEAD = unpack(KEYS)

local SESSION_TTL, LATEST_TTL = tonumber(ARGV[1]), tonumber(ARGV[2])
local MAX_MESSAGES, MAX_CHARS = tonumber(ARGV[3]), tonumber(ARGV[4])
local JUMP, CONVERSATION, AT, GIVEN = tonumber(ARGV[5]), ARGV[6], ARGV[7], tonumber(ARGV[8])
local SEED, SEED_SEQ, SEED_GEN, SEED_LANG, SEED_ACTIVE, SEED_IDS = ARGV[9], 0, 0, '', 0, ''
local ABSORB, ABSORB_CREATED, ABSORB_LANG, ABSORB_ITEMS = '', '', '', ''
local OWN = 9 -- a script's own arguments come after these
if SEED ~= '-' then -- an answer to a question
  SEED_SEQ, SEED_GEN, SEED_LANG = tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12]
  ABSORB, ABSORB_CREATED, ABSORB_LANG, ABSORB_ITEMS = ARGV[13], ARGV[14], ARGV[15], ARGV[16]
  SEED_ACTIVE, SEED_IDS = tonumber(ARGV[17]), ARGV[18]
  OWN = 18
end

local META_TTL = math.max(SESSION_TTL, LATEST_TTL)
local GROUP = 'archive'
local MARK = JOURNAL .. ':run' -- beside the journal, so in its slot; only a seed looks at it
local SKEW = 60000 -- of clocks, in milliseconds: how well we know what came before what
local call, find, sub = redis.call, string.find, string.sub

local function whole_number(number) -- tostring would write 1e+14
  return string.format('%.0f', number)
end

local function now()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function parsed(item)
  local a = find(item, '\n', 1, true)
  local b = find(item, '\n', a + 1, true)
  local c = find(item, '\n', b + 1, true)
  local d = find(item, '\n', c + 1, true)
  local e = find(item, '\n', d + 1, true)
  return {
    seq = sub(item, 1, a - 1), chars = tonumber(sub(item, a + 1, b - 1)), sid = sub(item, b + 1, c - 1),
    id = sub(item, c + 1, d - 1), head = sub(item, d + 1, e - 1), fragment = sub(item, e + 1)
  }
end

local function item_of(message, sid)
  return table.concat({ message.seq, message.chars, sid, message.id, message.head, message.fragment }, '\n')
end

local function in_journal(message)
  return '{"seq":' .. message.seq .. ',' .. message.head .. ',' .. sub(message.fragment, 2)
end

local function highest(key)
  return tonumber(call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]) or 0
end

local function holds(key, seq)
  return call('ZCOUNT', key, seq, seq) > 0
end

-- Which run of the server this is. The replication id is new at every start and at every promotion, and those are
-- the moments at which acknowledged writes may have been lost: no counter is trusted past one. Nor past a time in which
-- the archive went on without this store, which a server that was only frozen or cut off does not notice (`front.lua`).
local function this_run()
  local run = string.match(call('INFO', 'replication'), 'master_replid:(%x+)') or ''
  return run .. (call('HGET', JOURNAL .. ':front', 'missed') or '')
end

-- `shown` is all that a reader needs besides the window, in one value: generation, seq, created, language, gap,
-- floor, seen, the document's length, and how often it was written: earlier versions keep a copy of a window for as long
-- as these two stand. All above `gap` has come by here in the run `seen`; what stands up to `floor` was trimmed.
local SHOWN = '^(%d+)\n(%d+)\n([^\n]*)\n([^\n]*)\n(%d+)\n(%-?%d+)\n([^\n]*)\n(%-?%d+)\n(%d+)$'

local function state()
  local meta, kind = call('HMGET', META, 'run', 'shown', 'doubt', 'unsure'), call('TYPE', DOC).ok
  local gen, seq, created, lang, gap, floor, seen, length, writes = string.match(meta[2] or '', SHOWN)
  local s = { this_run = this_run(), run = meta[1] or '', known_gen = tonumber(gen), seen = seen or '' }
  s.records = call('HLEN', RECORD) -- its generation, and the messages that were erased one by one
  s.rec = s.records > 0 and tonumber(call('HGET', RECORD, 'gen')) or 0
  s.user_rec = tonumber(call('HGET', USER_RECORD, 'gen')) or 0
  s.gen = math.max(s.known_gen or 0, s.rec, s.user_rec)
  s.seeded = s.run == s.this_run and seq ~= nil
  s.seq, s.created, s.lang = tonumber(seq) or 0, created ~= '' and created, lang or ''
  s.gap, s.floor = tonumber(gap) or 0, tonumber(floor) or 0
  s.length, s.writes = tonumber(length) or -1, tonumber(writes) or 0
  s.doubt = tonumber(meta[3]) or 0 -- until when receipts may be missing that only the archive has
  s.unsure = s.seeded and meta[4] == '1' -- begun while the archive was down
  s.odd, s.live = kind ~= 'string' and kind ~= 'none', kind == 'string'
  s.foreign = s.live and not s.created -- a document of another application
  s.stale = s.seen ~= '' and s.seen ~= s.this_run -- messages from before a restart: perhaps erased since
  s.token = whole_number(s.rec) .. ':' .. whole_number(s.user_rec)
  if s.run == '' then -- no counter: pending numbers identify those that the archive is just given
    s.token = s.token .. ':' .. whole_number(highest(PENDING))
  end
  return s
end

-- An erase may have reached the archive before us; but a conversation begun while it was down knew no generation.
local function is_erased(s)
  return GIVEN and GIVEN < math.max(s.gen, SEED == s.token and not s.unsure and SEED_GEN or 0)
end

local function wants_seed(s)
  return not s.seeded or s.unsure or (GIVEN and GIVEN > s.gen)
end

-- What only Python can find out: the archive's answer, or what a foreign document says. An answer that was fetched
-- before an erase, or before a worker has placed what waited, is not taken: the token has changed since. 3: what is
-- stale is to be looked at first.
local function question(s, needs_seq, makes_seen)
  local document = s.foreign and call('GET', DOC) or ''
  local unread = s.foreign and ABSORB ~= redis.sha1hex(document)
  local unseeded = needs_seq and wants_seed(s) and SEED ~= s.token
  local stale = s.stale and (needs_seq or makes_seen) and SEED ~= s.token
  if unread or unseeded or stale then
    return { 'ask', s.token, document, stale and 3 or needs_seq and 1 or 0 }
  end
end

local function save(s)
  local seq = whole_number(s.seq)
  s.writes = s.writes + 1
  local shown = table.concat({ whole_number(s.gen), seq, s.created or '', s.lang, whole_number(s.gap),
    whole_number(s.floor), s.seen, s.length, whole_number(s.writes) }, '\n')
  -- Earlier versions read the window by an `index`; of an empty one they make nothing and take the script's word.
  call('HSET', META, 'run', s.run, 'seq', seq, 'shown', shown, 'index', '')
  call('PEXPIRE', META, META_TTL)
end

local function forget_id(message) -- of a message that is in neither any more
  if not holds(WINDOW, message.seq) and not holds(PENDING, message.seq) then
    call('HDEL', IDS, message.id)
  end
end

local function entry_at(sid) -- its stream, its id, whether it is a dead letter
  if sub(sid, 1, 1) == '!' then
    return DEAD, sub(sid, 2), true
  end
  return JOURNAL, sid, false
end

local function withdraw(sid)
  local stream, id, dead = entry_at(sid)
  if not dead then
    call('XACK', stream, GROUP, id)
  end
  call('XDEL', stream, id)
end

-- Everything of the conversation but its erasures. The keys it used stay as tombstones, with nothing else in them.
local function purge()
  local waiting, withdrawn = call('ZRANGE', PENDING, 0, -1), {}
  for _, item in ipairs(waiting) do
    local sid = parsed(item).sid
    if not withdrawn[sid] then
      withdrawn[sid] = true
      withdraw(sid)
    end
  end
  call('DEL', DOC, LATEST, META, WINDOW, PENDING, IDS, TURN)
  for _, field in ipairs(call('HKEYS', RECEIPTS)) do
    local kept = call('HGET', RECEIPTS, field)
    call('HSET', RECEIPTS, field, sub(kept, 1, find(kept, '\n', 1, true)))
  end
  return #waiting
end

-- Since when, in this run of the server, our mark stands; nil when it does not. A wipe deletes it.
local function watched(s)
  local run, since = string.match(call('GET', MARK) or '', '^(%x+)\n(%d+)$')
  return run == s.this_run and tonumber(since) or nil
end

local function may_evict_all()
  return find(call('INFO', 'memory'), 'maxmemory_policy:allkeys', 1, true)
end

-- Whether nothing that this store acknowledged of the conversation is missing here and in the archive: its last write
-- was in this run of the server and after our mark was set, which a wipe deletes; what waits is never evicted.
local function unbroken(s)
  local since = watched(s)
  if not since then
    call('SET', MARK, s.this_run .. '\n' .. whole_number(now()))
    return false
  end
  return s.run == '' and SEED_ACTIVE > since + SKEW and not may_evict_all()
end

-- The archive is down, and this conversation is new here or has ended: it continues under numbers higher than any it
-- can have had, in a generation that the worker finds out. Only where the archive once answered in this very run, so that
-- nothing was lost since. Answers whether it may.
local function begin_unsure(s)
  if s.run ~= '' or not watched(s) or may_evict_all() then
    return s.unsure
  end
  s.seq = math.max(now(), highest(WINDOW), highest(PENDING))
  s.gap, s.run, s.seen, s.unsure = s.seq, s.this_run, s.this_run, true
  call('HSET', META, 'unsure', 1)
  save(s)
  return true
end

local function seed(s)
  local lost = not unbroken(s) and not s.unsure -- perhaps: it did not just end by its TTL
  if s.known_gen and s.known_gen < SEED_GEN and not s.unsure then -- erased while this store was down
    purge()
    s.seq, s.gap, s.floor, s.live, s.created, s.lang = 0, 0, 0, false, false, ''
  end
  local base = math.max(SEED_SEQ, s.seq, highest(WINDOW), highest(PENDING))
  if base > 0 and lost then
    base = base + JUMP -- what the last run acknowledged and lost may still be in a worker's hands
  end
  if (SEED_SEQ > 0 or SEED_GEN > 0) and not s.known_gen and lost then
    call('HSET', META, 'doubt', whole_number(now() + META_TTL)) -- its receipts went with the rest
  end
  if SEED_SEQ > 0 then
    call('ZREMRANGEBYSCORE', WINDOW, '-inf', 0) -- absorbed before we knew that the archive has the conversation
  end
  call('HDEL', META, 'unsure')
  if not s.unsure or base > s.seq then
    s.gap = base
  end
  s.seq, s.gen, s.unsure = base, math.max(s.gen, SEED_GEN), false
  s.run, s.seen = s.this_run, s.this_run
  s.lang = s.lang ~= '' and s.lang or SEED_LANG
  save(s)
end

local function absorb(s)
  s.created, s.lang = ABSORB_CREATED ~= '' and ABSORB_CREATED or AT, s.lang ~= '' and s.lang or ABSORB_LANG
  s.foreign = false
  if s.seq > 0 then
    return -- the archive has this conversation, and what the document says of it
  end
  local lines = {}
  for line in string.gmatch(ABSORB_ITEMS .. '\n', '([^\n]*)\n') do
    lines[#lines + 1] = line
  end
  for first = 1, #lines - 5, 6 do
    call('ZADD', WINDOW, lines[first], table.concat(lines, '\n', first, first + 5))
  end
end

-- After every check and before every write: a session to write to.
local function prepare(s)
  if s.odd then
    call('DEL', DOC)
  end
  if s.foreign then
    absorb(s)
  elseif not s.live then -- ended, or ended by hand
    local old = call('ZRANGE', WINDOW, 0, -1)
    call('DEL', WINDOW)
    for _, item in ipairs(old) do
      forget_id(parsed(item))
    end
    s.created, s.gap, s.floor = AT, s.seq, 0
  end
end

-- So that a whole user can be erased. A conversation with something pending is always listed.
local function note_conversation(waiting)
  if waiting and call('ZSCORE', CONVERSATIONS, CONVERSATION) == 'inf' then
    return
  end
  local moment = now()
  call('ZADD', CONVERSATIONS, waiting and '+inf' or whole_number(moment + META_TTL), CONVERSATION)
  call('ZREMRANGEBYSCORE', CONVERSATIONS, '-inf', whole_number(moment))
  if waiting or call('ZCOUNT', CONVERSATIONS, '+inf', '+inf') > 0 then
    call('PERSIST', CONVERSATIONS)
  else
    call('PEXPIRE', CONVERSATIONS, META_TTL)
  end
end

-- Ids that were erased one by one: which of these (a list of digests) are among them?
local function tombstones(s, digests)
  local found = {}
  if #digests > 0 and s.records > 0 then
    for i, erased in ipairs(call('HMGET', RECORD, unpack(digests))) do
      if erased then
        found[#found + 1] = i - 1
      end
    end
  end
  return found
end
