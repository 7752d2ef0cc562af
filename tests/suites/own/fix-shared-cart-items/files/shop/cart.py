"""A cart of articles. Prices are in cents."""


class Cart:
    def __init__(self, lines=[], discount=0):
        """`lines` are dicts with article, price and quantity; `discount` is in percent."""
        self.lines = lines
        self.discount = discount

    def add(self, article, price, quantity=1):
        self.lines.append({"article": article, "price": price, "quantity": quantity})

    def remove(self, article):
        for line in self.lines:
            if line["article"] == article:
                self.lines.remove(line)

    def total(self):
        cents = 0
        for line in self.lines:
            cents += int(line["price"] * line["quantity"] * (1 - self.discount / 100))
        return cents

    def dump(self):
        """Returns what `restore` takes."""
        return {"lines": self.lines, "discount": self.discount}


def restore(data):
    """Returns the cart that `dump` has written."""
    return Cart(data["lines"], data["discount"])
