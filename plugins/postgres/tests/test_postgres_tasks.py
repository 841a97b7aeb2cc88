"""Every task: its reference solution earns 1, doing nothing earns 0, and so do wrong and lazy solutions."""

import pytest
from database_here import begin, reward_of, rows

from gem_postgres._tasks import DATABASES, own_tasks
from gem_postgres.env import PostgresEnv

TASKS = own_tasks()
WRONG = {
    "every open loan, not only the overdue ones": (
        "overdue-fines",
        "INSERT INTO fines (loan_id, amount) SELECT loan_id, (date '2026-06-30' - due) * 0.20 FROM loans "
        "WHERE returned IS NULL",
    ),
    "fines that are paid already": (
        "overdue-fines",
        TASKS["overdue-fines"].solution[0].replace("false", "true"),
    ),
    "the right members, but also a change nobody asked for": (
        "suspend-members",
        TASKS["suspend-members"].solution[0],
        "DELETE FROM fines WHERE paid",
    ),
    "the later one of two members is kept": (
        "merge-members",
        TASKS["merge-members"].solution[0].replace("min(", "max("),
        TASKS["merge-members"].solution[1].replace("m.member_id > n", "m.member_id < n"),
    ),
    "a table that looks like the view": (
        "popular-books",
        TASKS["popular-books"].solution[0].replace("CREATE VIEW", "CREATE TABLE"),
    ),
    "a view of fixed rows": (
        "popular-books",
        TASKS["popular-books"].solution[0].replace("CREATE VIEW popular_books", "CREATE TABLE fixed"),
        "CREATE VIEW popular_books AS SELECT * FROM fixed",
    ),
    "an empty table with the right columns": (
        "genre-report",
        TASKS["genre-report"].solution[0],
    ),
    "columns in the wrong order": ("index-loans", "CREATE INDEX ON loans (lent, member_id)"),
    "discontinued products, too": (
        "raise-prices",
        "UPDATE products SET price = round(price * 1.075, 2) WHERE category = 'tools'",
    ),
    "cancelled, but nothing back in stock": ("cancel-orders", TASKS["cancel-orders"].solution[1]),
    "products without any stock are forgotten": (
        "reorder-list",
        TASKS["reorder-list"].solution[0],
        TASKS["reorder-list"].solution[1].replace("LEFT JOIN", "JOIN"),
    ),
    "a constraint that holds for new rows only": (
        "negative-stock",
        "ALTER TABLE stock ADD CHECK (quantity >= 0) NOT VALID",
    ),
    "null for orders without lines": (
        "order-totals",
        "ALTER TABLE orders ADD COLUMN total numeric",
        TASKS["order-totals"].solution[1],
    ),
    "no foreign key": ("orphans", TASKS["orphans"].solution[0]),
    "a foreign key that does not cascade": (
        "orphans",
        TASKS["orphans"].solution[0],
        "ALTER TABLE enrolments ADD FOREIGN KEY (student_id) REFERENCES students",
    ),
    "enrolments of all courses": ("missing-grades", "DELETE FROM enrolments WHERE grade IS NULL"),
    "each course to another teacher": (
        "free-teacher",
        "UPDATE courses SET teacher_id = 1 + course_id % 6 WHERE teacher_id IS NULL",
    ),
    "a function that always says the same": (
        "average-function",
        "CREATE FUNCTION average_grade(integer) RETURNS numeric LANGUAGE sql AS 'SELECT 66.67'",
    ),
    "all is deleted": ("clean-cities", "TRUNCATE students"),
    "the table is gone": ("lost-copies", "DROP TABLE copies CASCADE"),
}


def test_there_are_twenty_tasks_on_three_databases() -> None:
    assert len(TASKS) == 20
    assert {task.template for task in TASKS.values()} == {*DATABASES}


@pytest.mark.parametrize("name", TASKS)
def test_the_reference_solution_earns_all_and_nothing_earns_nothing(env: PostgresEnv, name: str) -> None:
    assert reward_of(env, name, *TASKS[name].solution) == 1.0
    assert reward_of(env, name) == 0.0


@pytest.mark.parametrize("why", WRONG)
def test_wrong_and_lazy_solutions_earn_nothing(env: PostgresEnv, why: str) -> None:
    name, *statements = WRONG[why]
    assert reward_of(env, name, *statements) == 0.0


@pytest.mark.parametrize("name", TASKS)
def test_a_solution_of_another_task_earns_nothing(env: PostgresEnv, name: str) -> None:
    """Of the same database, so that the statements work."""
    others = [task for task in TASKS.values() if task.template == TASKS[name].template]
    other = others[(others.index(TASKS[name]) + 1) % len(others)]
    assert reward_of(env, name, *other.solution) == 0.0


def test_another_way_to_the_same_end_earns_all(env: PostgresEnv) -> None:
    one, two = (
        "UPDATE students SET city = trim(city)",
        "UPDATE students SET city = upper(left(city, 1)) || lower(substr(city, 2))",
    )
    assert reward_of(env, "clean-cities", one, two) == 1.0
    assert reward_of(env, "negative-stock", "UPDATE stock SET quantity = greatest(quantity, 0)",
                     "ALTER TABLE stock ADD CONSTRAINT nothing_below_zero CHECK (NOT quantity < 0)") == 1.0  # fmt: skip


def test_one_teacher_has_the_most_free_hours(env: PostgresEnv) -> None:
    """Otherwise the task would have two solutions, of which one would earn nothing."""
    begin(env, "free-teacher")
    free = rows(
        env,
        "SELECT t.hours - coalesce(sum(c.weekly_hours), 0) AS free FROM teachers t LEFT JOIN courses c "
        "USING (teacher_id) GROUP BY t.teacher_id, t.hours ORDER BY 1 DESC",
    )
    assert int(free[0]["free"]) > int(free[1]["free"])
