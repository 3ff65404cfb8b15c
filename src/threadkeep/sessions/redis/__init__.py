"""The hot store on plain Redis ≥ 7 or Valkey. Import its modules only where Redis is wanted: they need the extra."""
