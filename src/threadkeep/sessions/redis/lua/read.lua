local s = state()
if s.foreign then
  return { 'foreign', whole_number(s.gen), call('GET', DOC) }
elseif not s.live and call('EXISTS', PENDING) == 0 then
  return { 'none' }
end
return snapshot(s, ARGV[OWN + 1])
