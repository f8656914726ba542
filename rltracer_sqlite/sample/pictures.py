"""Questions about small pictures, drawn here and stored as PNG in a data URI."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from functools import partial
from random import Random

from .task import Attempt, Draft, Task

SIDE = 48  # pixels
PALETTE = bytes.fromhex("fbfaf6c8433a2f5fa8efbf2f")  # paper, red, blue, yellow
RED, BLUE, YELLOW = 1, 2, 3
NAMES = {RED: "red", BLUE: "blue", YELLOW: "yellow"}
UNIT = 4  # pixels of a bar's unit
SYSTEM = "Look at the picture, think, and answer with one word or number in \\boxed{}."


class Canvas:
    """A square picture of palette indices."""

    def __init__(self) -> None:
        self.rows = [bytearray(SIDE) for _ in range(SIDE)]

    def box(self, left: int, top: int, width: int, height: int, colour: int) -> None:
        """Fill a rectangle."""
        for row in self.rows[top : top + height]:
            row[left : left + width] = bytes([colour]) * width

    def disc(self, x: int, y: int, radius: int, colour: int) -> None:
        """Fill a circle."""
        for row in range(y - radius, y + radius + 1):
            for column in range(x - radius, x + radius + 1):
                if (row - y) ** 2 + (column - x) ** 2 <= radius * (radius + 1):  # rounder than radius²
                    self.rows[row][column] = colour

    def png(self) -> bytes:
        """Return the picture as a PNG with a palette, two bits a pixel (https://www.w3.org/TR/png-3/)."""
        lines = (b"\0" + bytes(_four_pixels(row[i : i + 4]) for i in range(0, SIDE, 4)) for row in self.rows)
        header = struct.pack(">IIBBBBB", SIDE, SIDE, 2, 3, 0, 0, 0)
        chunks = ((b"IHDR", header), (b"PLTE", PALETTE), (b"IDAT", _stored(b"".join(lines))), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)

    def uri(self) -> str:
        """Return the picture as a data URI."""
        return "data:image/png;base64," + b64encode(self.png()).decode("ascii")


def _four_pixels(pixels: bytearray) -> int:
    return pixels[0] << 6 | pixels[1] << 4 | pixels[2] << 2 | pixels[3]


def _stored(data: bytes) -> bytes:
    # A stored block, since what a compressor makes of the same bytes differs between builds of zlib.
    length = len(data)
    return b"\x78\x01\x01" + struct.pack("<HH", length, length ^ 0xFFFF) + data + struct.pack(">I", zlib.adler32(data))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def picture_task(name: str, idx: int, canvas: Canvas, text: str, answer: str, attempt: Attempt) -> Task:
    """Return a question about a picture as a task."""
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": canvas.uri()}}]
    prompt = [{"role": "user", "content": parts}]
    return Task(name, "pictures", "PictureTask", idx, prompt, SYSTEM, answer, attempt)


def answer_picture(draft: Draft, passed: bool, rng: Random, thought: str, value: int | str) -> None:
    """Give the answer, with or without the box, and score it."""
    boxed = rng.random() < (0.9 if passed else 0.6)
    draft.say(f"\\boxed{{{value}}}" if boxed else f"It is {value}.", thought)
    draft.score(passed, {"exact_match": (float(passed), 1.0), "format": (float(boxed), 0.1)})


def count_squares(name: str, idx: int, seed: str) -> Task:
    """Ask for the number of blue squares in a grid of blue and red ones."""
    rng = Random(seed)
    grid = [[rng.choice((0, 0, BLUE, BLUE, RED)) for _ in range(5)] for _ in range(5)]
    canvas = Canvas()
    for y, row in enumerate(grid):
        for x, colour in enumerate(row):
            canvas.box(2 + 9 * x, 2 + 9 * y, 7, 7, colour)
    blue = [row.count(BLUE) for row in grid]
    attempt = partial(_count_rows, blue, [row.count(RED) for row in grid])
    return picture_task(name, idx, canvas, "How many blue squares are in the picture?", str(sum(blue)), attempt)


def _count_rows(blue: list[int], red: list[int], draft: Draft, passed: bool, rng: Random) -> None:
    counts, slip = list(blue), ""
    if not passed:
        row = rng.choice([index for index, number in enumerate(red) if number])
        counts[row] += red[row]
        slip = f" In row {row + 1} I take all the squares together."
    listed = ", ".join(f"row {index + 1}: {number}" for index, number in enumerate(counts))
    opening = rng.choice(("Row by row from the top.", "Five rows of five cells.", "I go through the rows."))
    thought = f"{opening}{slip} {listed}. Sum {sum(counts)}."
    answer_picture(draft, passed, rng, thought, sum(counts))


def name_circle(name: str, idx: int, colour: int) -> Task:
    """Ask for the colour of the one circle."""
    canvas = Canvas()
    for x, y, square in ((3, 4, RED), (32, 6, BLUE), (6, 31, BLUE), (35, 34, RED)):
        canvas.box(x, y, 10, 10, square)
    canvas.disc(23, 24, 9, colour)
    return picture_task(name, idx, canvas, "What colour is the circle?", NAMES[colour], partial(_see_circle, colour))


def _see_circle(colour: int, draft: Draft, passed: bool, rng: Random) -> None:
    other = rng.choice([other for other in (RED, BLUE) if other != colour])
    right = f"Four squares stand around one round shape in the middle. The round one is {NAMES[colour]}."
    wrong = f"Most shapes are squares. The one that catches the eye, top {'left' if other == RED else 'right'}, "
    thought = right if passed else wrong + f"is {NAMES[other]}; I take that for the circle."
    answer_picture(draft, passed, rng, thought, NAMES[colour if passed else other])


def compare_bars(name: str, idx: int, red: int, blue: int, yellow: int) -> Task:
    """Ask by how many units one bar is taller than another."""
    canvas = Canvas()
    for x, units, colour in ((5, red, RED), (19, yellow, YELLOW), (33, blue, BLUE)):
        canvas.box(x, SIDE - 2 - UNIT * units, 10, UNIT * units, colour)
    text = f"One unit is {UNIT} pixels; the picture is {SIDE} pixels high. By how many units is the red bar taller "
    attempt = partial(_measure_bars, red, blue, yellow)
    return picture_task(name, idx, canvas, text + "than the blue bar?", str(red - blue), attempt)


def _measure_bars(red: int, blue: int, yellow: int, draft: Draft, passed: bool, rng: Random) -> None:
    mistakes = (
        (f"The red bar is {red} units tall, so the answer is {red}.", red),
        (
            f"Red {red} units. Next to it stands a bar of {yellow} units: {red} − {yellow} = {red - yellow}.",
            red - yellow,
        ),
    )
    right = (f"Red {red} units, blue {blue} units: {red} − {blue} = {red - blue}.", red - blue)
    thought, value = right if passed else rng.choice(mistakes)
    answer_picture(draft, passed, rng, thought, value)


TRAIN = (
    count_squares("blue-squares", 0, "squares-1"),
    name_circle("one-circle", 1, YELLOW),
    compare_bars("three-bars", 2, red=9, blue=4, yellow=7),
)
EVAL = (count_squares("blue-squares-held-out", 100, "squares-2"),)
