"""The page: one file of HTML that asks no other host for anything.

It consists of `page/index.html`, the style sheets and scripts of `page/`, and the data: descriptions of the runs and
the columns of all episodes before the scripts, shards behind them, so that the first view is up before they are parsed.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast

from gem_train.rollout import without_secrets
from gem_viewer._columns import columns
from gem_viewer._errors import ViewError
from gem_viewer._folder import ShardFolder
from gem_viewer._reading import block_of, unreadable_gaps
from gem_viewer._shards import BLOCK, TokenTable, as_json, shard

if TYPE_CHECKING:
    from gem_train.records import Records

_SCRIPTS = (
    "dom.js",
    "source.js",
    "runs.js",
    "filters.js",
    "curves.js",
    "run.js",
    "table.js",
    "episodes.js",
    "tokens.js",
    "episode.js",
    "group.js",
    "main.js",
)
"""In one scope, in this order: a name is declared before the script that uses it runs."""

_STYLES = ("uplot/uPlot.min.css", "style.css")
_LIBRARY = "uplot/uPlot.iife.min.js"
_SPARE_CELLS = 4_000_000
"""Of the table of metrics, beside 32 for each value."""
_HALF = re.compile("[\ud800-\udfff]")
"""Half characters, which stand in a name for bytes that are no UTF-8. An address cannot have them."""


def described(records: Records, name: str) -> dict[str, Any]:
    """What the page shows of a run besides its episodes and metrics, as plain data.

    Args:
        records: the run.
        name: what the page calls it.
    """
    settings = without_secrets(records.settings)
    if records.versions:
        settings.pop("versions", None)  # an evaluation has them there, too
    return {
        "name": name,
        "kind": records.kind,
        "settings": {key: _shown(value) for key, value in settings.items()},
        "kwargs": _env_kwargs(settings),
        "versions": dict(records.versions),
        "gaps": list(records.gaps),
        "warnings": list(records.warnings),
    }


def metric_lines(records: Records) -> list[dict[str, float | None]]:
    """The metrics of each update, with its number as `step`; `None` for what is not finite."""
    return [{name: _or_none(value) for name, value in line.items()} for line in records.metrics]


def metric_columns(lines: Sequence[Mapping[str, float | None]]) -> dict[str, list[float | None]]:
    """A list of each metric's values by line; `None` where it is missing. Those that hardly any line has are left out
    where there are too many of them.
    """
    counts = Counter(name for line in lines for name in line)
    # A name of its own in each line of a file would make a table of its square.
    most = (_SPARE_CELLS + 32 * counts.total()) // max(len(lines), 1)
    names = counts if len(counts) <= most else [name for name, _ in counts.most_common(most)]
    return {name: [line.get(name) for line in lines] for name in names}


def names_of(opened: Sequence[Records]) -> list[str]:
    """A name for each run, which no other has."""
    taken: dict[str, int] = {}
    names: list[str] = []
    for records in opened:
        name = _HALF.sub("\ufffd", records.name)
        taken[name] = number = taken.get(name, 0) + 1
        names.append(name if number == 1 else f"{name} ({number})")
    return names


class Written(NamedTuple):
    """A page that was written."""

    paths: list[Path]
    """The file, and the folder if there is one."""
    size: int
    """Bytes of both."""
    gaps: list[str]
    """What could not be read of the runs, a sentence each, beside `Records.gaps`."""


def write_page(opened: Sequence[Records], path: Path, *, split: bool = False, done: Callable[[int], None]) -> Written:
    """Write the page with its data.

    Args:
        opened: the runs.
        path: the file; replaced if it exists.
        split: put the shards into a folder beside the page, which loads them as they are needed.
        done: called with the number of episodes that were written, now and then.

    Raises:
        ViewError: it cannot be written.
    """
    if path.is_dir():
        raise ViewError(f"{path} is a folder: give the name of a file, such as page.html")
    try:
        if not split:
            return _written(opened, path, None, done)
        folder = ShardFolder(path, opened)
        try:
            return _written(opened, path, folder, done)
        finally:
            folder.discard()
    except OSError as error:
        raise ViewError(f"{path} cannot be written: {error}. Free some space or choose another place") from error


def _written(opened: Sequence[Records], path: Path, folder: ShardFolder | None, done: Callable[[int], None]) -> Written:
    runs: list[dict[str, Any]] = []
    tables: list[dict[str, Any]] = []
    gaps: list[str] = []
    with tempfile.TemporaryFile() as spool:
        for number, (records, name) in enumerate(zip(opened, names_of(opened), strict=True)):
            table = TokenTable(records.texts)
            unreadable: dict[int, str] = {}
            sizes: list[list[int]] = []
            for block, one in enumerate(_shards(records, table, unreadable)):
                place = f"{number}-{block}"
                if folder is None:
                    spool.writelines(_element_of(place, one))
                else:
                    folder.add(f"{place}.js", _script_of(place, one))
                sizes.append([len(part) for part in one])
                done(min(BLOCK, len(records.summaries) - block * BLOCK))
            about = described(records, name)
            about["gaps"] += unreadable_gaps(unreadable)
            gaps += [f"{name}: {gap}" for gap in unreadable_gaps(unreadable)]
            about["metrics"] = metric_columns(metric_lines(records))
            runs.append({**about, "columns": columns(records.summaries), "sizes": sizes})
            tables.append(table.entries())
        boot = {"source": "embedded", "folder": "", "block": BLOCK}
        if folder is not None:
            boot |= {"source": "beside", "folder": folder.path.name}
        _write(path, _head(boot, {"runs": runs, "tables": tables}), spool, folder)
    paths = [path] if folder is None else [path, folder.path]
    return Written(paths, path.stat().st_size + (folder.size if folder else 0), gaps)


def served_page() -> tuple[bytes, str]:
    """The page without data, which it asks its own server for; and its content security policy."""
    return _head({"source": "server", "block": BLOCK}, {}), _policy("server")


def _write(path: Path, head: bytes, shards: IO[bytes], folder: ShardFolder | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        try:
            file.write(head)
            shards.seek(0)
            shutil.copyfileobj(shards, file, 1 << 20)
            file.flush()
            if folder is not None:
                folder.replace()
            new.replace(path)
        except BaseException:
            new.unlink(missing_ok=True)
            raise


def _shards(records: Records, table: TokenTable, unreadable: dict[int, str]) -> Iterator[list[bytes]]:
    for start in range(0, len(records.summaries), BLOCK):
        yield shard(block_of(records, start, unreadable), table)


def _encoded(one: list[bytes]) -> bytes:
    return base64.b64encode(b"".join(one))


def _element_of(place: str, one: list[bytes]) -> list[bytes]:
    return [f'<script type="text/plain" id="shard-{place}">'.encode(), _encoded(one), b"</script>\n"]


def _script_of(place: str, one: list[bytes]) -> bytes:
    return b'gemShard("%s","%s")\n' % (place.encode(), _encoded(one))


def _head(boot: Mapping[str, Any], data: Mapping[str, Any]) -> bytes:
    """Everything but the shards."""
    elements = [_data_element("boot", boot), *(_data_element(name, value) for name, value in data.items())]
    parts = {
        "{policy}": html.escape(_policy(boot["source"])).encode(),
        "{style}": _style(),
        "{data}": b"\n".join(elements),
        "{library}": _read(_LIBRARY),
        "{script}": _script(),
    }
    # At once, so that no mark is found in a part.
    return re.sub(rb"\{\w+\}", lambda mark: parts[mark[0].decode()], _read("index.html"))


def _data_element(name: str, value: object) -> bytes:
    # A text of the data must not end the element, or begin a comment in it.
    text = as_json(value).replace(b"<", b"\\u003c")
    return b'<script type="application/json" id="%s">%s</script>' % (name.encode(), text)


def _policy(source: str) -> str:
    """The content security policy: the scripts and the style of this page, and nothing else."""
    scripts = [_hash(_read(_LIBRARY)), _hash(_script())]
    # Lets these scripts, and only them, load the files beside the page.
    scripts += ["'strict-dynamic'"] if source == "beside" else []
    rules = {
        "default-src": ["'none'"],
        "script-src": scripts,
        "style-src": [_hash(_style())],
        "img-src": ["data:"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        **({"connect-src": ["'self'"]} if source == "server" else {}),
    }
    return "; ".join(" ".join([name, *values]) for name, values in rules.items())


def _hash(content: bytes) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"


def _script() -> bytes:
    return b'"use strict";\n(() => {\n' + b"\n".join(map(_read, _SCRIPTS)) + b"\n})();\n"


def _style() -> bytes:
    return b"\n".join(map(_read, _STYLES))


def _read(name: str) -> bytes:
    return files("gem_viewer").joinpath("page", *name.split("/")).read_bytes()


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)


def _env_kwargs(settings: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Arguments of the environments as `gem-core play --set` takes them: by entry, or for all under an empty text."""
    played = _mapping(settings.get("environments")) or {"": settings}  # of an evaluation, or not
    return {
        entry: {str(key): _shown(value) for key, value in _mapping(_mapping(fields).get("env_kwargs")).items()}
        for entry, fields in played.items()
    }


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _or_none(number: float) -> float | None:
    return number if number - number == 0 else None
