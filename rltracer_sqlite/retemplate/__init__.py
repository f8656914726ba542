"""SFT rows under another prompt: the prefix that a template rendered is found again, and rendered by a new one."""

from __future__ import annotations

from .files import TemplateSource
from .rewrite import check_outputs, retemplate
from .templates import PromptTemplate, RetemplateError

__all__ = ["PromptTemplate", "RetemplateError", "TemplateSource", "check_outputs", "retemplate"]
