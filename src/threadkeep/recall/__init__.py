"""From a question to the messages that matter: pure steps, and one pipeline."""
