"""Prints what each user has ordered."""

from loaders import load_orders, load_products, load_users


def main():
    emails = {user["name"]: user["email"] for user in load_users("data/users.txt")}
    prices = {product["sku"]: product["price"] for product in load_products("data/products.txt")}
    for order in load_orders("data/orders.txt"):
        print(order["id"], emails[order["user"]], order["quantity"] * prices[order["sku"]])


if __name__ == "__main__":
    main()
