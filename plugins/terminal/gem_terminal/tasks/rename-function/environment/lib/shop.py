from tax import rate


def price(net):
    return net * (1 + rate())


def prices(nets):
    return [price(net) for net in nets]
