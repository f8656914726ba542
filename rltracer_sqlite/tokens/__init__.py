"""Token ids, their text, and the conversations and per-token numbers in them."""

from .streams import Tokens, branch_tokens, merge_tokens, shard_tokens
from .templates import Conversation, parse_conversation
from .tokenizer import TextTokenizer, TokenizerError, load_tokenizer

__all__ = [
    "Conversation",
    "TextTokenizer",
    "TokenizerError",
    "Tokens",
    "branch_tokens",
    "load_tokenizer",
    "merge_tokens",
    "parse_conversation",
    "shard_tokens",
]
