#!/bin/bash
set -e
cat > /app/bank.py <<'END'
class Account:
    def __init__(self, owner, balance=0, history=None):
        self.owner = owner
        self.balance = balance
        self.history = [] if history is None else history

    def deposit(self, amount):
        self._book(amount, amount)

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("there is not enough")
        self._book(amount, -amount)

    def _book(self, amount, change):
        if amount < 0:
            raise ValueError("an amount is not negative")
        self.balance += change
        self.history.append(change)


def transfer(source, target, amount):
    source.withdraw(amount)
    target.deposit(amount)
END
python3 /app/test_bank.py
