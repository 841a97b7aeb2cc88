import os
from pathlib import Path

SHARE = {
    "share/run.sh": "echo run\n",
    "share/notes.txt": "notes\n",
    "share/tools/backup.sh": "echo backup\n",
    "share/tools/readme.txt": "read me\n",
    "share/tools/data.csv": "a,b\n",
    "share/public/index.txt": "index\n",
}
MODES = {".sh": 0o700, ".txt": 0o640, ".csv": 0o644}


def mode(path):
    return os.lstat(path).st_mode & 0o7777


for name, text in SHARE.items():
    path = Path("/app") / name
    assert path.read_text() == text
    assert mode(path) == MODES[path.suffix], path
for folder in ("share", "share/tools", "share/public"):
    assert mode(Path("/app") / folder) == 0o750, folder
