"""Short-term stores."""
