"""Models of text: each behind a port, each with an offline default."""
