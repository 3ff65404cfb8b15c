"""Long-term stores."""
