"""Our own tasks: solved by their solutions, and by nothing less."""

from pathlib import Path

import pytest
from playing import reward_of

import gem_terminal
from gem_terminal._kinds import KINDS
from gem_terminal.env import TerminalEnv
from gem_terminal.formats import read_tasks

pytestmark = pytest.mark.long

FOLDER = Path(gem_terminal.__file__).parent / "tasks"
TASKS = {task.name: task for task in read_tasks(FOLDER).runnable}
WRONG = {
    "add-user": [
        "echo 'ada:x:1001:2001:Ada King:/home/ada:/bin/bash' > /etc/passwd; echo 'readers:x:2001:' >> /etc/group; "
        "mkdir /home/ada; touch /home/ada/.profile",
    ],
    "broken-links": ["find /app/site -type l -delete; echo 7 > /app/removed.txt"],
    "calculator": [
        "cd /app; echo import sys > calc.py; echo 'for line in sys.stdin:' >> calc.py;"
        " printf '  try: print(eval(line))\\n  except Exception: print(\"error\")\\n' >> calc.py",
        "cp /app/examples.txt /app/calc.py",
    ],
    "change-settings": [
        "cd /app; cp kiosk.env kiosk.env.bak; printf 'COLOR=green\\nCLOSE=18\\nLANG=en\\n' > kiosk.env"
    ],
    "count-errors": [
        "cd /app; echo service,errors > errors.csv; for s in billing login mail search; do"
        " echo $s,$(grep ERROR service.txt | grep -c $s) >> errors.csv; done",
    ],
    "duplicate-files": ["cd /app/inbox; rm d-letter.txt b-letter.txt e-list.txt f-list.txt h.txt"],
    "failing-tests": [
        "cd /app; printf 'import unittest\\n' > test_bank.py",
        "cd /app; printf 'class Account: pass\\ndef transfer(*a): pass\\nimport sys, os\\nos._exit(0)\\n' > bank.py",
    ],
    "fill-database": [
        "cd /app; printf 'CREATE TABLE books (isbn TEXT PRIMARY KEY, title TEXT, year INTEGER, copies INTEGER)' >"
        " make.sql; python3 -c \"import csv, sqlite3; b = sqlite3.connect('library.db');"
        " b.execute(open('make.sql').read()); rows = [tuple(r) for r in csv.reader(open('books.csv'))][1:];"
        " b.executemany('INSERT OR REPLACE INTO books VALUES (?, ?, ?, ?)', rows); b.commit()\"",
    ],
    "fix-median": [
        "cd /app; sed -i 's/line.strip() for/int(line) for/' median.py",
        "echo 'print(\"none\")' > /app/median.py",
    ],
    "frequent-words": ["tr -s ' ' '\\n' < /app/story.txt | sort | uniq -c | sort -rn | head -5 > /app/words.txt"],
    "join-tables": [
        "cd /app; echo name,subject,mark > report.csv; join -t, <(tail -n +2 students.csv | sort)"
        " <(tail -n +2 marks.csv | sort) | cut -d, -f2- | sort >> report.csv; touch unknown.txt",
    ],
    "json-to-csv": [
        "cd /app; python3 -c \"import csv, json; out = csv.writer(open('people.csv', 'w'));"
        " out.writerow('name city zip skills'.split()); a = 'address';"
        " [out.writerow([p['name'], *p.get(a, {}).values(), ';'.join(p['skills'])])"
        " for p in json.load(open('people.json'))]\"",
    ],
    "largest-files": ["find /app/store -type f | sort | head -3 > /app/largest.txt"],
    "merge-lists": ["cat /app/lists/* | sort -u > /app/all.txt"],
    "order-totals": [
        "cd /app; echo customer,total > totals.csv;"
        " awk -F, 'NR > 1 { t[$2] += $4 } END { for (c in t) print c \",\" t[c] }' orders.csv | sort >> totals.csv",
    ],
    "pack-project": [
        "cd /app; tar czf project.tar.gz project",
        "cd /app; rm -r project; tar czf project.tar.gz -T /dev/null",
    ],
    "rename-function": ["grep -rl price /app/lib | xargs sed -i 's/price/gross/g'"],
    "rename-photos": ["cd /app/photos; for f in *; do mv \"$f\" \"$(echo $f | tr 'A-Z ' 'a-z_')\"; done; :"],
    "repair-config": ["cd /app; echo 'import sys' > check_config.py"],
    "repair-launcher": ["printf '#!/bin/sh\\necho \"Hello, $1!\"\\n' > /app/bin/greet; chmod +x /app/bin/greet"],
    "roman-numbers": ["echo 'print(\"MCMXCIV\")' > /app/roman.py"],
    "set-permissions": ["chmod -R 750 /app/share"],
    "slow-pages": [
        "cd /app; tr -d '\"' < access.txt |"
        " awk '{ t[$3] += $5; n[$3]++ } END { for (p in t) print p, int(t[p] / n[p]) }' | sort -k2,2nr > slow.txt",
    ],
    "sort-reports": ["cd /app/reports; for y in 2023 2024 2025; do mkdir $y; mv report-$y-* $y; done"],
}
"""Lazy or wrong ways to do them."""


def test_there_are_enough_and_each_has_a_kind() -> None:
    assert sorted(name for names in KINDS.values() for name in names) == sorted(TASKS)
    assert len(TASKS) >= 20
    assert not read_tasks(FOLDER).refused


@pytest.mark.parametrize("name", TASKS)
def test_the_solution_solves_it_and_nothing_does_not(terminal: TerminalEnv, name: str) -> None:
    assert reward_of(terminal, name, TASKS[name].solution) == 1.0
    assert reward_of(terminal, name, None) == 0.0


def test_every_task_has_a_wrong_way() -> None:
    assert sorted(WRONG) == sorted(TASKS)


@pytest.mark.parametrize(("name", "script"), [(name, script) for name, scripts in WRONG.items() for script in scripts])
def test_wrong_and_lazy_ways_earn_nothing(terminal: TerminalEnv, name: str, script: str) -> None:
    assert reward_of(terminal, name, script) == 0.0
