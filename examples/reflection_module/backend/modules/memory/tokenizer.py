"""tiktoken's numbers (`TOKENIZER_NAME`), offline; UTF-8 bytes where tiktoken is not installed."""

from threadkeep.models.tokens import pack_token_record, tokenize_text

__all__ = ["pack_token_record", "tokenize_text"]
