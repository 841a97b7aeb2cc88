import tarfile
from pathlib import Path

BEFORE = {
    "project/main.py": "print('main')\n",
    "project/build.tmp": "junk\n",
    "project/lib/util.py": "VALUE = 1\n",
    "project/lib/cache.tmp": "junk\n",
    "project/docs/guide.md": "# Guide\n",
    "project/docs/.draft.tmp": "junk\n",
    "project/.settings": "color=blue\n",
}
for name, text in BEFORE.items():
    assert (Path("/app") / name).read_text() == text
with tarfile.open("/app/project.tar.gz", "r:gz") as archive:
    files = {
        member.name.removeprefix("./"): archive.extractfile(member).read().decode()
        for member in archive.getmembers()
        if member.isfile()
    }
assert files == {name: text for name, text in BEFORE.items() if not name.endswith(".tmp")}
