from pathlib import Path

folder = Path("/app/reports")
wanted = {
    f"{month[:4]}/{month[5:]}.txt": f"Report of {month}\n"
    for month in ["2023-04", "2023-11", "2024-01", "2024-04", "2025-12"]
}
wanted |= {"report-draft.txt": "draft\n", "summary.txt": "summary\n"}
found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
assert found == wanted
