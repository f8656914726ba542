"""The generations of prime-rl's MicroBatch and TrainingSample: which field stands where.

Both are written as arrays without names. A generation has a length of its own, or is told from another of the same
length by what stands at one place. Sources: every commit of prime-rl from 2025-12 to 2026-08 that changed one of
the two structs (docs/formats.md), and the forms seen since then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .msgpack_fields import IDS
from .msgpack_frames import array_header

FIRST_FIVE = "input_ids loss_mask advantages inference_logprobs position_ids"
_PIXELS = "pixel_values pixel_values_shape image_grid_thw"
_MULTIMODAL = f"routed_experts {_PIXELS} mm_token_type_ids"
_KWARGS = "routed_experts mm_kwargs mm_token_type_ids"
_G12 = f"temperatures env_names teacher_logprobs lora_num_tokens {_KWARGS} training_mode"
_WEIGHTS = "rl_weights ce_weights ref_kl_weights"
_G20 = f"sequence_lengths temperatures env_names seq_lens ref_logprobs {_KWARGS} {_WEIGHTS}"

MICRO_BATCHES: dict[str, str] = {
    "g00": "temperature",
    "g01": "lora_num_tokens temperature",
    "g02": "temperature teacher_logprobs lora_num_tokens",
    "g04": "temperatures teacher_logprobs lora_num_tokens",
    "g05": "temperatures teacher_logprobs lora_num_tokens pixel_values image_grid_thw",
    "g06": "temperatures teacher_logprobs lora_num_tokens routed_experts pixel_values image_grid_thw",
    "g07": f"temperatures teacher_logprobs lora_num_tokens routed_experts {_PIXELS}",
    "g08": f"temperatures teacher_logprobs lora_num_tokens {_MULTIMODAL}",
    "g09": f"temperatures teacher_logprobs lora_num_tokens {_MULTIMODAL} sft_loss",
    "g10": f"temperatures env_names teacher_logprobs lora_num_tokens {_MULTIMODAL} sft_loss",
    "g11": f"temperatures env_names teacher_logprobs lora_num_tokens {_MULTIMODAL} training_mode",
    "g12": _G12,
    "g13": f"{_G12} rewards",
    "g15": f"{_G12} rewards run_id run_step",
    "g16": f"{_G12} rewards run_id run_step".replace("env_names", "env_names sequence_lengths"),
    "g17": f"sequence_lengths {_G12} rewards run_id run_step",
    "g18": f"sequence_lengths temperatures env_names ref_logprobs lora_num_tokens {_KWARGS} {_WEIGHTS} run_id run_step",
    "g19": f"sequence_lengths temperatures env_names seq_lens ref_logprobs lora_num_tokens {_KWARGS} {_WEIGHTS}"
    " run_id run_step",
    "g20": _G20,
    "pB": f"{_G20} sampling_mask",
    "pC": f"{_G20} trace_ids branch_indices",
    "pD": f"{_G20} sampling_mask trace_ids branch_indices",
    "pE": f"{_G20} sampling_mask trace_ids branch_indices payload",
}
"""Generation -> the fields behind the first five. g14 is g13 with another form of routed_experts, pD' is pD with
references to images instead of images; nothing that is read here differs."""

_OLD_SAMPLE = "prompt_ids prompt_mask completion_ids completion_mask completion_logprobs"
_G04_SAMPLE = f"{_OLD_SAMPLE} completion_temperatures teacher_logprobs advantage reward"
_G07_SAMPLE = f"{_G04_SAMPLE} pixel_values pixel_values_shape image_grid_thw routed_experts"
_NEW_SAMPLE = "token_ids mask logprobs temperatures env_name"

TRAINING_SAMPLES: dict[tuple[int, str], str] = {
    (6, "old"): f"{_OLD_SAMPLE} advantage",
    (7, "old"): f"{_OLD_SAMPLE} teacher_logprobs advantage",
    (8, "old"): f"{_OLD_SAMPLE} teacher_logprobs advantage reward",
    (9, "old"): _G04_SAMPLE,
    (11, "old"): f"{_G04_SAMPLE} pixel_values image_grid_thw",
    (12, "old"): f"{_G04_SAMPLE} pixel_values image_grid_thw routed_experts",
    (13, "old"): _G07_SAMPLE,
    (14, "old"): f"{_G07_SAMPLE} mm_token_type_ids",
    (15, "old"): f"{_G07_SAMPLE} mm_token_type_ids sft_loss",
    (16, "env"): f"{_OLD_SAMPLE} completion_temperatures env_name teacher_logprobs advantage reward pixel_values"
    " pixel_values_shape image_grid_thw routed_experts mm_token_type_ids training_mode",
    (14, "env"): f"{_OLD_SAMPLE} completion_temperatures env_name teacher_logprobs advantage reward mm_kwargs"
    " routed_experts mm_token_type_ids training_mode",
    (12, "new"): f"{_NEW_SAMPLE} teacher_logprobs advantage reward mm_kwargs routed_experts mm_token_type_ids"
    " training_mode",
    (13, "new"): f"{_NEW_SAMPLE} ref_logprobs mm_kwargs routed_experts mm_token_type_ids {_WEIGHTS} advantages",
}
"""(Length, style) -> all fields of a TrainingSample; "env": it names its env at place 6, "new": at place 4."""


def micro_batch_fields(parts: Sequence[memoryview], tokens: int) -> tuple[str, dict[str, memoryview]]:
    """Return the generation of a micro batch of `tokens` tokens, and its parts by name.

    What is longer than any known generation gives its first five fields, and lengths where they are recognised.
    """
    generation = _generation(parts, tokens)
    if generation is None:
        names = FIRST_FIVE.split() + (["sequence_lengths"] if _sums_to(parts, 5, tokens) else [])
        return f"unknown ({len(parts)} fields)", dict(zip(names, parts, strict=False))
    return generation, dict(zip(f"{FIRST_FIVE} {MICRO_BATCHES[generation]}".split(), parts, strict=True))


def _generation(parts: Sequence[memoryview], tokens: int) -> str | None:
    by_length = {6: "g00", 7: "g01", 10: "g05", 11: "g06", 12: "g07"}
    has_envs = _begins_with(parts, 6, _is_text)
    match len(parts):
        case 8:
            return "g04" if _is_array(parts, 5) else "g02"
        case 13:
            return "g12" if has_envs else "g08"
        case 14:
            return "g13" if has_envs else "g09"
        case 15:
            return "g11" if _is_text(parts[14]) else "g10"
        case 16:
            return "g15" if has_envs else "g20"
        case 17:
            if _sums_to(parts, 8, tokens):
                return "pB"
            return "g17" if _sums_to(parts, 5, tokens) else "g16"
        case 18:
            return "pC" if _sums_to(parts, 8, tokens) else "g18"
        case 19:
            is_g19 = _begins_with(parts, 10, _is_integer) or _is_text(parts[17]) or _is_integer(parts[18])
            return "g19" if is_g19 else "pD"
        case 20:
            # One fork has a list of numbers at the last place, which is not read.
            return "pE"
    return by_length.get(len(parts))


def training_sample_fields(parts: Sequence[memoryview]) -> tuple[str, dict[str, memoryview]]:
    """Return the style of a TrainingSample ("old", "env" or "new") and its parts by name."""
    style = "new" if _is_text(parts[4]) else "env" if len(parts) > 6 and _is_text(parts[6]) else "old"
    names = TRAINING_SAMPLES.get((len(parts), style), _NEW_SAMPLE if style == "new" else _OLD_SAMPLE).split()
    return style, dict(zip(names, parts, strict=False))


def _is_array(parts: Sequence[memoryview], at: int) -> bool:
    return array_header(parts[at], 0) is not None


def _begins_with(parts: Sequence[memoryview], at: int, is_kind: Callable[[memoryview], bool]) -> bool:
    """Say whether the part is a list whose first element is of a kind."""
    if at >= len(parts):
        return False
    data = parts[at]
    header = array_header(data, 0)
    return bool(header and header[0] and is_kind(data[header[1] :]))


def _is_text(data: memoryview) -> bool:
    kind = data[0] if len(data) else 0xC0
    return 0xA0 <= kind <= 0xBF or 0xD9 <= kind <= 0xDB


def _is_integer(data: memoryview) -> bool:
    kind = data[0] if len(data) else 0xC0
    return kind <= 0x7F or kind >= 0xE0 or 0xCC <= kind <= 0xD3


def _sums_to(parts: Sequence[memoryview], at: int, tokens: int) -> bool:
    if not _begins_with(parts, at, _is_integer):
        return False
    try:
        return sum(IDS.decode(parts[at])) == tokens
    except ValueError:
        return False
