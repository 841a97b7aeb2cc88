from pathlib import Path
def page(results: Path, figures: Path) -> str:
    return ""
