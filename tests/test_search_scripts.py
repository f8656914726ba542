"""Text in scripts that are written without spaces: any part of it is found, and marked where it stands."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rltracer_sqlite import search_text
from rltracer_sqlite.index.database import IndexFileError, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import find_matches, full_text_query, has_old_text, has_text, shard_texts
from rltracer_sqlite.search.characters import FORMS, SCRIPTS, WIDE, apart, holds_some
from rltracer_sqlite.search.refresh import text_follower
from tests.commands import indexed, rltracer
from tests.indexing import index, value
from tests.layouts.records import message, trace
from tests.searching import found, said, text, write_step

SAID = {
    "chinese": "请数一数下面代码的行数，再估算GPU显存。",
    "traditional": "請計算這個函數的執行時間",
    "japanese": "2024年はうるう年です。4で割り切れる年がそうです。",
    "katakana": "エラーメッセージを確認する",
    "korean": "보상 모델을 다시 학습시켰다",
    "thai": "ฉันไม่กินข้าวเช้า",
    "lao": "ຂ້ອຍກິນເຂົ້າແລ້ວ",
    "khmer": "ខ្ញុំញ៉ាំបាយហើយ",
    "myanmar": "ကျွန်တော်ထမင်းစားပြီးပြီ",
    "plain": "The café counts rows, ＧＰＵ １２ of them",
}
ASKED = [
    ("数一数", "chinese", "数一数"),
    ("码", "chinese", "码"),
    ("GPU显存", "chinese", "GPU显存"),
    ("显存 代码", "chinese", "代码"),
    ("gpu显*", "chinese", "GPU显"),
    ("NEAR(下面 行数, 3)", "chinese", "下面"),
    ("NEAR(下面 行数, 2)", None, None),
    ("數的執行 OR 函數", "traditional", "函數的執行"),
    ("うるう年", "japanese", "うるう年"),
    ("うるう*", "japanese", "うるう"),
    ('"割り切れる 年"', "japanese", "割り切れる年"),
    ("２０２４年", "japanese", "2024年"),
    ("メッセージ", "katakana", "メッセージ"),
    ("ﾒｯｾｰｼﾞ", "katakana", "メッセージ"),
    ("モデル NOT エラー", None, None),
    ("모델", "korean", "모델"),
    (normalize("NFD", "학습"), "korean", "학습"),
    ("กินข้าว", "thai", "กินข้าว"),
    ("กันข้าว", None, None),  # another vowel
    ("ເຂົ້າ", "lao", "ເຂົ້າ"),
    ("បាយ", "khmer", "បាយ"),
    ("ထမင်း", "myanmar", "ထမင်း"),
    ("gpu 12", "plain", "ＧＰＵ"),
    ("caf", None, None),
    ("年数", None, None),
    ("う。る", "japanese", "うる"),  # as exit.code finds exit code
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index with its full text, of a trajectory for each script."""
    folder = tmp_path_factory.mktemp("scripts")
    write_step(folder / "run", [said(words, id=name) for name, words in SAID.items()])
    index(folder / "x.sqlite", folder / "run")
    text(folder / "x.sqlite", folder / "run")
    return folder / "x.sqlite"


@pytest.mark.parametrize(("question", "uid", "marked"), ASKED, ids=[str(n) for n in range(len(ASKED))])
def test_any_part_is_found_and_marked(database: Path, question: str, uid: str | None, marked: str | None) -> None:
    matches = search_text(database, question)
    assert [match.uid for match in matches] == ([uid] if uid else [])
    for match in matches:
        assert match.snippet is not None
        assert (match.branch, match.message, match.snippet) == (1, 2, SAID[match.uid])
        start, end = match.marks[0]
        assert match.snippet[start:end] == marked


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("うるう", "2024年はうるう年です。4で割り切れる"),
        ("모델", "보상 모델을 다시"),
        ("行数", "请数一数下面代码的行数，"),
    ],
)
def test_the_terminal_shows_it(database: Path, question: str, line: str) -> None:
    shown = rltracer("search", database, question).stdout
    assert line in shown
    assert shown.endswith("\n1 of 1 trajectory\n")


LETTERS = st.sampled_from("数一行うるンーカﾞｶ보델กินั้ນິបៃ့ထ々𠮷⼤\u3099")
TEXTS = st.lists(st.one_of(LETTERS, st.sampled_from("。、 \n·")), min_size=1, max_size=30).map("".join)


@given(TEXTS, st.data())
def test_every_part_is_found_by_its_phrase(whole: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(whole) - 1))
    part = whole[start : data.draw(st.integers(start + 1, len(whole)))]
    # A form that is compared as another together with what stands beside it is one character with that.
    assume(apart(whole).split() == (apart(whole[:start]) + apart(part) + apart(whole[start + len(part) :])).split())
    [marks] = find_matches([whole], full_text_query(f'"{part}"'))
    letters = [place for place, letter in enumerate(part, start) if letter not in "。、 \n·"]
    assume(letters and apart(part).strip("。、 \n·\u3099ﾞ"))
    assert any(first <= letters[0] and letters[-1] < last for first, last in marks)


@given(st.text())
def test_setting_apart_only_adds_separators(whole: str) -> None:
    plain = apart(whole.replace("\x1f", " "), "\x1f").replace("\x1f", "")
    assert len(plain) == len(whole)
    assert not whole.isascii() or apart(whole) == whole


def test_other_texts_stay_as_they_are() -> None:
    for plain in ("exit code 1", "où ça – “naïve” … ✔️ 😀 ≥", "Việt", "привет", "हिन्दी किताब", "عربي"):
        assert apart(plain) == plain
        assert not holds_some(plain.encode())


def test_each_character_is_seen_in_its_bytes_and_forms_become_no_longer() -> None:
    found = re.findall(f"[{SCRIPTS}{WIDE}]", "".join(map(chr, [*range(0xD800), *range(0xE000, 0x32000)])))
    assert len(found) > 110_000
    assert all(map(holds_some, {one.encode()[:2]: one.encode() for one in found}.values()))
    assert {len(normalize("NFKC", one)) for one in re.findall(FORMS, " ".join(found))} == {1}


def as_earlier_versions_made_it(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("drop table trajectories_text")
        connection.execute(
            "create virtual table trajectories_text using fts5(body, content='', tokenize='porter unicode61')"
        )
        connection.execute("insert into trajectories_text (rowid, body) values (1, 'うるう年 once')")
        connection.commit()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return an index whose full text was made by an earlier version."""
    write_step(tmp_path / "run", [trace([message("user", "うるう年 once")], id="one")])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    text(tmp_path / "x.sqlite", tmp_path / "run")
    as_earlier_versions_made_it(tmp_path / "x.sqlite")
    return tmp_path / "x.sqlite"


def test_full_text_of_an_earlier_version_is_told_and_not_searched(old: Path) -> None:
    sentence = f"The full text of {old} was made by an earlier version, and is not searched. Make it anew with: "
    asked = rltracer("search", old, "once")
    assert (asked.returncode, asked.stdout, asked.stderr) == (1, "", f"Error: {sentence}rltracer fts {old}\n")
    with pytest.raises(IndexFileError, match="was made by an earlier version"):
        search_text(old, "once")
    assert f"is not searched. Make it anew: rltracer fts {old}\n" in indexed(old, old.parent / "run").stdout


def by_command(old: Path) -> None:
    assert rltracer("fts", old).stdout.startswith("Built anew.\n2 trajectories added")


def by_watching(old: Path) -> None:
    with closing(open_for_writing(old)) as connection:
        assert text_follower(lambda: Roots([old.parent]))(connection, None) == ""


def by_rebuilding(old: Path) -> None:
    assert indexed(old, old.parent / "run", "--rebuild").returncode == 0


@pytest.mark.parametrize("way", [by_command, by_watching, by_rebuilding], ids=lambda way: way.__name__)
def test_it_is_made_anew_whole(old: Path, way: Callable[[Path], Any]) -> None:
    write_step(old.parent / "run", [trace([message("user", "平年 twice")], id="two")], mode="a")
    index(old, old.parent / "run")
    way(old)
    with closing(sqlite3.connect(old)) as connection:
        assert (has_text(connection), has_old_text(connection)) == (True, False)
    assert [found(old, question) for question in ("るう", "平", "once OR twice")] == [["one"], ["two"], ["one", "two"]]
    assert value(old, "select count(*) from trajectories_text_docsize") == 2


def test_a_text_is_cut_where_sqlite_takes_in_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_texts, "LONGEST_TEXT", 2_000)
    write_step(tmp_path / "run", [said("数一行" * 1_000, id="long"), said("ш" * 1_500 + " ж", id="also")])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    done = text(tmp_path / "x.sqlite", tmp_path / "run")
    assert (done.unreadable, done.searchable, done.bytes) == (0, 2, 9_000 + 3_003 + 14)
    assert (found(tmp_path / "x.sqlite", "行数"), found(tmp_path / "x.sqlite", "ж")) == (["long"], [])
