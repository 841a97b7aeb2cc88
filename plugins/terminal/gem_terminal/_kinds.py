"""Our own tasks, by kind."""

from __future__ import annotations

KINDS: dict[str, tuple[str, ...]] = {
    "Files": (
        "broken-links", "duplicate-files", "largest-files", "pack-project", "rename-photos", "set-permissions",
        "sort-reports",
    ),
    "Text": ("count-errors", "frequent-words", "merge-lists", "rename-function", "slow-pages"),
    "Data": ("fill-database", "join-tables", "json-to-csv", "order-totals"),
    "Python": ("calculator", "failing-tests", "fix-median", "roman-numbers"),
    "Repair": ("add-user", "change-settings", "repair-config", "repair-launcher"),
}  # fmt: skip
"""Names of tasks. Every task of the folder `tasks/` has one kind."""
