"""Who calls, and whose memory they may reach."""
