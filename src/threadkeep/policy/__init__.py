"""Pure decisions about what may be kept, and in which form."""
