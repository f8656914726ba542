"""Word problems: families of questions whose numbers are computed, with the mistakes people make in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random

from .task import Draft, Task

SYSTEM = "Think first, in the language of the question. Then give the final answer in \\boxed{}."
OPENINGS = {
    "en": ("", "Let me take it step by step. ", "What is asked for? ", "OK, slowly. "),
    "de": ("", "Der Reihe nach. ", "Was ist gefragt? "),
    "es": ("", "Vamos por partes. ", "A ver. "),
}
PLACES = ("units", "tens", "hundreds", "thousands")
CLOSINGS = {"en": "The answer is", "de": "Die Antwort ist", "es": "La respuesta es"}


@dataclass(frozen=True)
class Question:
    """A question, its answer, ways of thinking that lead there, and mistaken ones.

    A mistaken one has the answer that it leads to, and the words where it leaves the right way.
    """

    text: str
    answer: int
    right: tuple[str, ...]
    wrong: tuple[tuple[str, int, str], ...]
    language: str = "en"


def count_jars(crates: int, jars: int, loose: int) -> Question:
    """Multiply and add."""
    packed, total = crates * jars, crates * jars + loose
    text = f"A stall gets {crates} crates of {jars} jars of honey each, and {loose} loose jars. How many jars is that?"
    right = (
        f"{crates} crates of {jars} jars are {packed} jars. With the {loose} loose ones that makes {total}.",
        f"{crates} × {jars} = {packed}, and {packed} + {loose} = {total}.",
    )
    wrong = ((f"{crates} × {jars} = {packed}, and that is all of them.", packed, "that is all"),)
    return Question(text, total, right, wrong)


def average_speed(way: int, out: int, back: int) -> Question:
    """Divide the whole way by the whole time; two speeds have no mean without their times."""
    there, home = way // out, way // back
    hours, mean = there + home, (out + back) // 2
    speed = 2 * way // hours
    text = (
        f"A van drives {way} km to a depot at {out} km/h and comes back the same way at {back} km/h. "
        "What is its average speed over the whole trip, in km/h?"
    )
    times = f"Out: {way} / {out} = {there} h. Back: {way} / {back} = {home} h. Together {hours} h."
    right = (
        f"{times} The whole way is {2 * way} km, and {2 * way} / {hours} = {speed}.",
        f"The mean of the speeds, {mean}, is too high: most time passes at {back}. {times} {2 * way} km make {speed}.",
    )
    wrong = (
        (f"Two speeds over the same distance, so I take their mean: ({out} + {back}) / 2 = {mean}.", mean, "I take"),
        (
            f"{times} The depot is {way} km away, and {way} / {hours} = {way // hours}.",
            way // hours,
            f"{way} / {hours}",
        ),
    )
    return Question(text, speed, right, wrong)


def count_posts(length: int, gap: int) -> Question:
    """Count the posts of a fence: one more than its gaps."""
    gaps = length // gap
    text = (
        f"Ein gerader Zaun ist {length} m lang. Alle {gap} m steht ein Pfosten, auch am Anfang und am Ende. "
        "Wie viele Pfosten sind es?"
    )
    right = (
        f"{length} : {gap} = {gaps} Abstände. Jeder endet an einem Pfosten, und vorn steht noch einer: {gaps + 1}.",
        f"Pfosten bei 0, {gap}, {2 * gap}, …, {length} m. Das sind {gaps} Schritte, also {gaps + 1} Stellen.",
    )
    wrong = (
        (f"Alle {gap} m ein Pfosten: {length} : {gap} = {gaps}. Also {gaps} Pfosten.", gaps, f"{gaps} Pfosten"),
        (f"{gaps} Abstände. Dazu die Pfosten am Anfang und am Ende: {gaps} + 2 = {gaps + 2}.", gaps + 2, "und am Ende"),
    )
    return Question(text, gaps + 1, right, wrong, "de")


def raise_and_cut(price: int, percent: int) -> Question:
    """Raise a price by some per cent and cut the new one by as many: less than before."""
    rise = price * percent // 100
    raised = price + rise
    cut = raised * percent // 100
    text = (
        f"Una bicicleta cuesta {price} €. La tienda sube el precio un {percent} % y, un mes después, "
        f"baja el nuevo precio un {percent} %. ¿Cuánto cuesta al final, en euros?"
    )
    right = (
        f"Tras la subida cuesta {raised} €. El {percent} % de {raised} es {cut}, y {raised} − {cut} = {raised - cut}.",
        f"Subir y bajar un {percent} % no se compensa: la base cambia. {price} → {raised} → {raised - cut}.",
    )
    euros = price + percent - rise
    wrong = (
        (
            f"Primero sube un {percent} % y luego baja un {percent} %. Se compensan: queda en {price}.",
            price,
            "Se compensan",
        ),
        (
            f"Sube {percent} €: {price + percent}. Baja el {percent} % de {price}, o sea {rise}. Queda en {euros}.",
            euros,
            f"de {price}",
        ),
    )
    return Question(text, raised - cut, right, wrong, "es")


def count_ones(last: int) -> Question:
    """Count how often the digit 1 is written from 1 to a number between 2000 and 2999. No rollout gets it right."""
    numbers = [str(number) for number in range(1, last + 1)]
    total, holders = sum(text.count("1") for text in numbers), sum("1" in text for text in numbers)
    places = (last // 10, last // 100 * 10, last // 1000 * 100, 1000)
    listed = ", ".join(f"{name} {count}" for name, count in zip(PLACES, places, strict=True))
    wrong = (
        (
            f"Full blocks only, the rests of the divisions are incomplete: {listed}. Sum {sum(places)}.",
            sum(places),
            "are incomplete",
        ),
        (f"I count the numbers with a 1 in them, so 11 counts once: {holders} of {last}.", holders, "counts once"),
        (
            f"1000 to 1999 lead with a 1: 1999 − 1000 = 999. Other places {total - 1000}. Sum {total - 1}.",
            total - 1,
            "= 999",
        ),
    )
    text = f"Somebody writes down all whole numbers from 1 to {last}. How often is the digit 1 written?"
    return Question(text, total, (), wrong)


def attempt(question: Question, draft: Draft, passed: bool, rng: Random) -> None:
    """Think, answer and be scored; who passes forgets the box less often."""
    thoughts = [(thought, question.answer, "") for thought in question.right] if passed else question.wrong
    thought, value, mistake = rng.choice(thoughts)
    boxed = rng.random() < (0.9 if passed else 0.5)
    shown = f"\\boxed{{{value}}}" if boxed else f"**{value}**"
    draft.say(f"{CLOSINGS[question.language]} {shown}.", rng.choice(OPENINGS[question.language]) + thought)
    if mistake:
        draft.slip(mistake)
    draft.score(passed, {"correct": (float(passed), 1.0), "format": (float(boxed), 0.1)})


def ramble(draft: Draft, passed: bool, rng: Random) -> None:
    """List the numbers one by one until the limit of output tokens cuts the thought off."""
    ones = [number for number in range(1, 1000) if "1" in str(number)]
    listed = ", ".join(f"{number} ({str(number).count('1')})" for number in ones)
    draft.say("", f"I will simply write them all down and count. {listed}, 1000 (1), 1001 (2), 10")
    draft.stop, draft.cut = "max_output_tokens", True
    draft.score(passed, {"correct": (0.0, 1.0), "format": (0.0, 0.1)})


def word_problem(name: str, idx: int, question: Question, rollouts: int = 6) -> Task:
    """Return a question as a task."""
    solve = partial(attempt, question)
    return Task(
        name, "word-problems", "QuestionTask", idx, question.text, SYSTEM, str(question.answer), solve, rollouts
    )


TRAIN = (
    word_problem("honey-jars", 0, count_jars(7, 12, 5)),
    word_problem("van-speed", 1, average_speed(120, 60, 40)),
    word_problem("zaunpfosten", 2, count_posts(60, 5)),
    word_problem("bicicleta", 3, raise_and_cut(250, 20)),
    word_problem("digit-one", 4, count_ones(2026)),
)
EVAL = (
    word_problem("van-speed-held-out", 100, average_speed(180, 90, 45), rollouts=4),
    word_problem("zaunpfosten-held-out", 101, count_posts(84, 7), rollouts=4),
)
