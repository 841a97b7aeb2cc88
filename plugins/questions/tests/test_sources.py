"""Where questions come from: files, folders, the hub's cache, bundled samples; and what is said when they do not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError, MissingExtraError
from gem_core.installation import install_line
from gem_questions._rows import Source, read, stream

ROWS = [{"problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(30)]


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    datasets = pytest.importorskip("datasets")
    patch = pytest.MonkeyPatch()
    patch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("cache"))
    yield
    patch.undo()


def write(path: Path, rows: Sequence[dict[str, Any]] = ROWS) -> str:
    """Rows as a file of the kind that the name says."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".csv":
        path.write_text("problem,answer\n" + "".join(f'"{row["problem"]}",{row["answer"]}\n' for row in rows))
    else:
        import datasets

        path.parent.mkdir(parents=True, exist_ok=True)
        datasets.Dataset.from_list(list(rows)).to_parquet(str(path))
    return str(path)


# -- reading -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["q.jsonl", "q.json", "q.csv", "q.parquet"])
def test_a_file_of_any_kind_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    rows = read(Source(write(tmp_path / name)))
    assert [dict(row) for row in rows] == ROWS


@pytest.mark.parametrize("name", ["q.jsonl", "q.json", "q.csv"])
def test_text_files_need_nothing_installed(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    assert len(read(Source(write(tmp_path / name)))) == 30


def test_csv_keeps_texts_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('problem,answer\n"Which, agent?",007\nempty?,\n')
    assert [row["answer"] for row in read(Source(str(tmp_path / "q.csv")))] == ["007", ""]


def test_empty_lines_of_jsonl_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"a": 1}\n\n  \n{"a": 2}\n')
    assert [row["a"] for row in read(Source(str(tmp_path / "q.jsonl")))] == [1, 2]


def test_a_folder_laid_out_like_the_hub_gives_its_splits(tmp_path: Path) -> None:
    for split, rows in {"train": ROWS[:20], "test": ROWS[20:]}.items():
        write(tmp_path / "data" / f"{split}-00000-of-00001.parquet", rows)
    assert len(read(Source(str(tmp_path), split="train"))) == 20
    assert read(Source(str(tmp_path), split="test"))[0]["answer"] == "21"


def test_a_folder_with_one_split_needs_no_name(tmp_path: Path) -> None:
    write(tmp_path / "data" / "train-00000-of-00001.parquet")
    assert len(read(Source(str(tmp_path)))) == 30


def test_streams_give_the_same_rows(tmp_path: Path) -> None:
    for name in ("q.jsonl", "q.parquet"):
        source = Source(write(tmp_path / name), streaming=True)
        assert [dict(row) for row in stream(source, None, 0, 8)] == ROWS


def test_streams_are_shuffled_by_seed_and_epoch(tmp_path: Path) -> None:
    source = Source(write(tmp_path / "q.jsonl"), streaming=True)

    def answers(seed: int, epoch: int) -> list[str]:
        return [row["answer"] for row in stream(source, seed, epoch, 100)]

    in_order = [row["answer"] for row in ROWS]
    assert answers(0, 0) == answers(0, 0) != in_order
    assert len({tuple(answers(*which)) for which in [(0, 0), (0, 1), (1, 0)]}) == 3
    assert sorted(answers(0, 0)) == sorted(in_order)


@pytest.mark.parametrize("name", ["q.jsonl", "q.json", "q.csv"])
def test_a_byte_order_mark_is_passed_over(tmp_path: Path, name: str) -> None:
    path = Path(write(tmp_path / name))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert [dict(row) for row in read(Source(str(path)))] == ROWS


@pytest.mark.parametrize("text", ["\n".join(map(json.dumps, ROWS)), json.dumps({"data": ROWS})])
def test_json_may_hold_lines_or_an_object_with_data(tmp_path: Path, text: str) -> None:
    (tmp_path / "q.json").write_text(text)
    assert read(Source(str(tmp_path / "q.json"))) == ROWS


def test_csv_fields_may_be_long(tmp_path: Path) -> None:
    write(tmp_path / "q.csv", [{"problem": "x" * 200_000, "answer": "1"}])
    assert len(read(Source(str(tmp_path / "q.csv")))[0]["problem"]) == 200_000


# -- what is said when there is nothing to read ------------------------------------------------------------------------


def refusal(dataset: Any, **kwargs: Any) -> str:
    with pytest.raises(EnvError) as caught:
        read(Source(str(dataset), **kwargs))
    return str(caught.value)


def test_a_misspelt_file_is_told_with_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path / "problems.jsonl")
    message = refusal(tmp_path / "problem.jsonl")
    assert str(tmp_path / "problem.jsonl") in message
    assert "Did you mean 'problems.jsonl'?" in message


def test_a_path_that_leads_nowhere_is_not_taken_for_a_hub_id() -> None:
    assert "no file or folder" in refusal("/no/such/folder")
    assert "no file or folder" in refusal("../questions")
    assert "no file or folder" in refusal("")


@pytest.mark.parametrize(
    "dataset",
    [
        None,
        5,
        b"q.jsonl",
        "",
        "missing.jsonl",
        Path("missing.parquet"),
        "./questions",
        "~nobody/questions",
        "a\0b",
        "/" + "x" * 5000,
        "package:",
        "package:gem_math",
        "package:gem_math/",
        "package:gem_math/missing.jsonl",
        "package:no_such_package/sample.jsonl",
        "package:.relative/sample.jsonl",
    ],
    ids=repr,
)
def test_what_cannot_be_a_data_set_is_refused_by_the_constructor(dataset: Any) -> None:
    with pytest.raises(EnvError):
        gem_core.make("qa:Dataset", dataset=dataset)


def test_a_folder_that_is_named_like_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").mkdir()
    with pytest.raises(EnvError, match="is a folder"):
        gem_core.make("qa:Dataset", dataset=tmp_path / "q.jsonl")


@pytest.mark.parametrize("name", ["q.jsonl", "q.parquet"])
def test_a_file_has_no_split_but_train(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name)
    assert gem_core.make("math:Dataset", dataset=Path(path), split="train").reset(row=0)[0] == ROWS[0]["problem"]
    for given in ({"split": "test"}, {"subset": "main"}):
        with pytest.raises(EnvError, match="split=None"):
            gem_core.make("math:Dataset", dataset=path, **given)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "q.txt").write_text("What?")
    assert ".jsonl" in refusal(tmp_path / "q.txt")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.jsonl", b'{"a": 1}\n{"a": \n'),
        ("q.jsonl", b"1\n2\n"),
        ("q.json", b'{"rows": []}'),
        ("q.json", b"not json"),
        ("q.csv", b"problem\n\xff\xfe\n"),
        ("q.parquet", b"PAR1 not really"),
    ],
)
def test_a_broken_file_is_told_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert str(tmp_path / name) in refusal(tmp_path / name)


def test_a_broken_line_is_told_by_number(tmp_path: Path) -> None:
    for line in ('{"a": ', '{"a": NaN}'):
        (tmp_path / "q.jsonl").write_text('{"a": 1}\n\n' + line + "\n")
        assert "line 3" in refusal(tmp_path / "q.jsonl")


@pytest.mark.parametrize("name", ["q.jsonl", "q.json", "q.csv"])
def test_no_rows_are_nothing_to_ask(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, [])
    assert "no rows" in refusal(tmp_path / name)


def test_several_splits_ask_for_a_choice(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(tmp_path / "data" / f"{split}-00000-of-00001.parquet")
    assert "split='train'" in refusal(tmp_path)
    message = refusal(tmp_path, split="tset")
    assert "Did you mean 'test'?" in message
    assert "train, test" in message


def test_without_the_library_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "q.parquet")
    monkeypatch.setitem(sys.modules, "datasets", None)
    for dataset in (path, "axon-rl/GSM-8k"):
        with pytest.raises(MissingExtraError, match=re.escape(install_line("data"))):
            gem_core.make("math:Dataset", dataset=dataset)


def test_without_network_the_way_out_is_told() -> None:
    program = (
        "import gem_core\n"
        "env = gem_core.make('math:GSM8K')\n"  # the constructor does not ask for it
        "try: env.reset()\n"
        "except gem_core.errors.EnvError as error: print(error)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    for part in ("axon-rl/GSM-8k", "hub or its cache", "load it once", "dataset='my.jsonl'"):
        assert part in run.stdout


@pytest.mark.parametrize("env_id", ["math:Sample", "qa:Sample"])
def test_samples_need_no_library(env_id: str) -> None:
    program = (
        "import sys, gem_core\n"
        f"gem_core.make({env_id!r}).reset(data_index=0)\n"
        "print(sorted({'datasets', 'pyarrow', 'pandas', 'sympy', 'math_verify'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
