from pathlib import Path

WANTED = {
    "img_001.jpg": "IMG 001.JPG",
    "summer_trip.jpg": "Summer Trip.jpeg",
    "old_house.jpg": "old house.jpg",
    "cat.jpg": "Cat.JPEG",
    "harbour.jpg": "harbour.jpg",
    "a_b_c.jpg": "A B C.Jpg",
}
folder = Path("/app/photos")
assert {path.name for path in folder.iterdir()} == {*WANTED, "notes.txt"}
for name, before in WANTED.items():
    assert (folder / name).read_text() == f"picture {before}\n"
assert (folder / "notes.txt").read_text() == "Taken by Ines.\n"
