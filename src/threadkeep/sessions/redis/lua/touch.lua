-- Open the session or slide its time; with an argument, set its language.
local s = state()
if is_erased(s) then
  return { 'erased' }
end
local asked = question(s, false)
if asked then
  return asked
end
prepare(s)
if ARGV[OWN + 1] ~= '' then
  s.lang = ARGV[OWN + 1]
end
write_session(s)
note_conversation(call('EXISTS', PENDING) == 1)
return { 'ok' }
