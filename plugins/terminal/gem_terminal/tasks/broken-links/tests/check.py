import os
from pathlib import Path

site = Path("/app/site")
files = {"index.html": "<p>index</p>\n", "pages/one.html": "<p>one</p>\n", "img/logo.svg": "<svg/>\n"}
links = {
    "pages/start.html": "../index.html",
    "latest": "pages",
    "img/icon.svg": "logo.svg",
    "pages/deep/x.html": "../../img/logo.svg",
}
for name, text in files.items():
    assert (site / name).read_text() == text and not (site / name).is_symlink()
for name, target in links.items():
    assert os.readlink(site / name) == target
left = [os.path.join(folder, name) for folder, names, others in os.walk(site) for name in names + others]
assert len([path for path in left if os.path.islink(path)]) == len(links)
assert Path("/app/removed.txt").read_text().strip() == "3"
