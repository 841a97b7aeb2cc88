class Account:
    """Money in cents."""

    def __init__(self, owner, balance=0, history=[]):
        self.owner = owner
        self.balance = balance
        self.history = history

    def deposit(self, amount):
        if amount < 0:
            raise ValueError("an amount is not negative")
        self.balance += amount
        self.history.append(amount)

    def withdraw(self, amount):
        if amount > self.balance:
            raise ValueError("there is not enough")
        self.balance -= amount


def transfer(source, target, amount):
    target.deposit(amount)
    source.withdraw(amount)
