-- The session and its counter, unless something waits: the archive seeds both anew. The latest turn stays.
if call('EXISTS', PENDING) == 0 then
  call('DEL', DOC, META, WINDOW, IDS)
  return { 'ok' }
end
return { 'pending' }
