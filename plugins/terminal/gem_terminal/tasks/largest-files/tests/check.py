from pathlib import Path

WANTED = ["/app/store/d/clip.bin", "/app/store/a/b/scan.bin", "/app/store/a/b/c/map.bin"]
assert Path("/app/largest.txt").read_text().split() == WANTED
assert all(Path(path).is_file() for path in WANTED)
