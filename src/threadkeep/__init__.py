"""Conversation memory for LLM agents."""
