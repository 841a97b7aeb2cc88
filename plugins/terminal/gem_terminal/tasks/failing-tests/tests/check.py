import json
import random
import shutil
import subprocess
from pathlib import Path

TESTS = 'import unittest\n\nfrom bank import Account, transfer\n\n\nclass Accounts(unittest.TestCase):\n    def test_accounts_are_apart(self):\n        one, other = Account("Wim"), Account("Xena")\n        one.deposit(5)\n        self.assertEqual(other.history, [])\n\n    def test_history(self):\n        account = Account("Wim", 10)\n        account.deposit(5)\n        account.withdraw(3)\n        self.assertEqual(account.history, [5, -3])\n\n    def test_a_failed_transfer_changes_nothing(self):\n        one, other = Account("Wim", 10), Account("Xena", 10)\n        with self.assertRaises(ValueError):\n            transfer(one, other, 11)\n        self.assertEqual((one.balance, other.balance), (10, 10))\n\n    def test_negative_amounts(self):\n        account = Account("Wim", 10)\n        with self.assertRaises(ValueError):\n            account.withdraw(-1)\n\n\nif __name__ == "__main__":\n    unittest.main()\n'
PROGRAM = """
import json, sys
sys.path.insert(0, "/app")
from bank import Account, transfer

first, second, moved = json.loads(sys.argv[1])
one, other, third = Account("Y", first), Account("Z", second), Account("A")
transfer(one, other, moved)
refused = 0
for amount in (first + second + 1, -1):
    try:
        transfer(one, other, amount)
    except ValueError:
        refused += 1
print(json.dumps([one.balance, other.balance, one.history, other.history, third.history, refused]))
"""

random.seed(11)
shutil.rmtree("/tests")  # what the program under test must not read
assert Path("/app/test_bank.py").read_text() == TESTS
assert subprocess.run(["python3", "test_bank.py"], cwd="/app", timeout=120).returncode == 0
first, second = random.randrange(100, 1000), random.randrange(100, 1000)
moved = random.randrange(1, first)
given = json.dumps([first, second, moved])
done = subprocess.run(["python3", "-c", PROGRAM, given], capture_output=True, text=True, timeout=120)
assert json.loads(done.stdout) == [first - moved, second + moved, [-moved], [moved], [], 2]
