-- Place drafts under the next seq: window, document, latest turn, pending, journal, receipt; all of it or nothing.
local KEY, PAYLOAD, HEAD, RECEIPT_TAIL = ARGV[OWN + 1], ARGV[OWN + 2], ARGV[OWN + 3], ARGV[OWN + 4]
local LANGUAGE, NEW_IDS = ARGV[OWN + 5], sub(ARGV[OWN + 6], 1, 1) == '1'
local ALLOWED = sub(ARGV[OWN + 6], 2) == '+' -- nothing in it says what the user has erased
local FRONT, TURN_AT, DRAFTS_AT = ARGV[OWN + 7], OWN + 8, OWN + 14

local ANY = '9007199254740991' -- a generation that is not known yet is no older one; an erase purges receipts anyway

-- Whether the archive may know these ids or this key, and we not: of messages that have left the window, or that were
-- erased; of receipts that were lost with the server's memory.
local function in_doubt(s)
  if KEY ~= '' then
    return s.doubt > 0 and s.doubt > now()
  end
  return not NEW_IDS and (s.gap > 0 or s.floor > 0 or s.gen > 0)
end

-- The archive behind this store has an id for it, and so has the process that appends: where they differ, the store was
-- wiped, detached or given to another archive, and Python finds out which.
if FRONT ~= '' and call('HGET', JOURNAL .. ':front', 'id') ~= FRONT then
  return { 'front' }
end

local s = state()
if is_erased(s) then
  return { 'erased' }
end

if KEY ~= '' then
  local kept = call('HGET', RECEIPTS, KEY)
  if kept then
    local expires, gen, payload, receipt = string.match(kept, '^(%d+)\n(%d+)\n(%x+)\n(.*)$')
    if not expires or tonumber(gen) < s.gen then
      return { 'forgotten' }
    elseif payload ~= PAYLOAD then
      return { 'other-payload' }
    end
    return { 'replay', receipt }
  end
end

local drafts, ids, stones = {}, {}, {}
for i = DRAFTS_AT, #ARGV, 6 do
  drafts[#drafts + 1] =
    { id = ARGV[i], digest = ARGV[i + 1], chars = ARGV[i + 3], head = ARGV[i + 4], fragment = ARGV[i + 5] }
  ids[#ids + 1], stones[#stones + 1] = ARGV[i], ARGV[i + 2]
end
local erased = tombstones(s, stones)
if #erased > 0 then
  return { 'tombstones', table.concat(erased, ' ') }
end
if not ALLOWED and call('HEXISTS', USER_RECORD, 'texts') == 1 then
  return { 'texts' } -- the user has erased some: only Python knows which of the drafts say them
end

local asked = question(s, true)
if asked then
  return asked
end
if SEED ~= s.token and in_doubt(s) then
  return { 'ask', s.token, '', 2 }
end
if wants_seed(s) and SEED_SEQ >= 0 then
  seed(s)
elseif wants_seed(s) and not begin_unsure(s) then
  return { 'unknown' }
end

local fresh, fresh_at, last, seen = {}, {}, s.seq, {}
for id, seq, digest in string.gmatch(SEED_IDS, '([^\n]+)\n(%d+)\n(%x+)') do -- what the archive holds of these
  seen[id] = seq .. '\n' .. digest
end
local known = #ids > 0 and call('HMGET', IDS, unpack(ids)) or {}
for i, draft in ipairs(drafts) do
  local have = known[i] or seen[draft.id]
  if have then
    local seq, digest = string.match(have, '^(%-?%d+)\n(.*)$')
    if digest ~= draft.digest then
      return { 'other-content' }
    end
    last = tonumber(seq)
  else
    last = s.seq + #fresh + 1
    draft.seq = whole_number(last)
    seen[draft.id] = draft.seq .. '\n' .. draft.digest
    fresh[#fresh + 1], fresh_at[#fresh + 1] = draft, i - 1
  end
end
if #drafts == 0 and KEY == '' and not s.live then
  return { 'ok', whole_number(last), '' } -- nothing to keep, and no session to keep alive
end

prepare(s)
local stamp = not s.unsure and whole_number(s.gen) or GIVEN and whole_number(GIVEN) or ''
local receipt = '{"status":"queued","seq":' .. whole_number(last) .. ',' .. RECEIPT_TAIL
if #fresh > 0 then
  local texts, window, pending, index = {}, {}, {}, {}
  for i, message in ipairs(fresh) do
    texts[i] = in_journal(message)
  end
  local sid = call('XADD', JOURNAL, '*', 'v', '1', 'scope', HEAD, 'generation', stamp, 'key', KEY,
    'payload', PAYLOAD, 'receipt', receipt, 'messages', '[' .. table.concat(texts, ',') .. ']')
  for i, message in ipairs(fresh) do
    window[2 * i - 1], window[2 * i] = message.seq, item_of(message, '')
    pending[2 * i - 1], pending[2 * i] = message.seq, item_of(message, sid)
    index[2 * i - 1], index[2 * i] = message.id, seen[message.id]
  end
  call('ZADD', WINDOW, unpack(window))
  call('ZADD', PENDING, unpack(pending))
  call('HSET', IDS, unpack(index))
  s.seq = s.seq + #fresh
  s.lang = s.lang ~= '' and s.lang or LANGUAGE
  keep_turn(turn_after(drafts, TURN_AT))
end
write_session(s)
note_conversation(#fresh > 0 or call('EXISTS', PENDING) == 1)

if KEY ~= '' then
  local moment = now()
  call('HSET', RECEIPTS, KEY,
    whole_number(moment + META_TTL) .. '\n' .. (stamp ~= '' and stamp or ANY) .. '\n' .. PAYLOAD .. '\n' .. receipt)
  call('PEXPIRE', RECEIPTS, META_TTL)
  -- Fields have no TTL of their own: look at a few on every visit, and the old ones go.
  local some = call('HRANDFIELD', RECEIPTS, 4, 'WITHVALUES')
  for i = 1, #some, 2 do
    if tonumber(string.match(some[i + 1], '^%d+')) < moment then
      call('HDEL', RECEIPTS, some[i])
    end
  end
end
return { 'ok', whole_number(last), table.concat(fresh_at, ' ') }
