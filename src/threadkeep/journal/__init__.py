"""The consumer of the journal, which brings queued entries to the archive or to mapped tables."""
