from pathlib import Path

wanted = [f"{name}@example.org" for name in ("ana", "bo", "chen", "dia", "eli", "fay")]
assert Path("/app/all.txt").read_bytes() == "".join(f"{one}\n" for one in wanted).encode()
