"""Stores that find messages by what they say."""
