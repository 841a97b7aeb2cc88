import shop

print(shop.price(10))  # the price of one
best_price = max(shop.prices([1, 2]))
