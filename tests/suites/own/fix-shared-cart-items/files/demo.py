from shop import Cart

cart = Cart(discount=15)
cart.add("pen", 10)
cart.add("paper", 499, 2)
print(cart.total())
