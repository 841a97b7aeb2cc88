import unittest

from bank import Account, transfer


class Accounts(unittest.TestCase):
    def test_accounts_are_apart(self):
        one, other = Account("Wim"), Account("Xena")
        one.deposit(5)
        self.assertEqual(other.history, [])

    def test_history(self):
        account = Account("Wim", 10)
        account.deposit(5)
        account.withdraw(3)
        self.assertEqual(account.history, [5, -3])

    def test_a_failed_transfer_changes_nothing(self):
        one, other = Account("Wim", 10), Account("Xena", 10)
        with self.assertRaises(ValueError):
            transfer(one, other, 11)
        self.assertEqual((one.balance, other.balance), (10, 10))

    def test_negative_amounts(self):
        account = Account("Wim", 10)
        with self.assertRaises(ValueError):
            account.withdraw(-1)


if __name__ == "__main__":
    unittest.main()
