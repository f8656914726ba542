"""Small files of each system that a mapping reads, as its writer makes them, and what is in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests import table_answers as answers
from tests import table_conversations as conversations
from tests.table_rows import Row

SAMPLES: dict[str, tuple[str, Callable[[Path], list[Row]]]] = {
    "verl": ("verl", answers.verl),
    "trl-text": ("trl", answers.trl_text),
    "trl-messages": ("trl", conversations.trl_messages),
    "ms-swift": ("ms-swift", answers.ms_swift),
    "ms-swift-ray": ("ms-swift", answers.ms_swift_ray),
    "nemo-rl": ("nemo-rl", conversations.nemo_rl),
    "nemo-gym": ("nemo-gym", conversations.nemo_gym),
    "skyrl": ("skyrl", answers.skyrl),
    "areal": ("areal", answers.areal),
    "roll-rlvr": ("roll", answers.roll_rlvr),
    "roll-agentic": ("roll", conversations.roll_agentic),
    "open-instruct": ("open-instruct", answers.open_instruct),
    "chat": ("chat", conversations.chat),
}
"""What can be written, by a name: the source that has to read it, and the function that writes it into a folder."""
