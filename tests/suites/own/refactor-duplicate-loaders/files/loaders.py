"""Readers of the three tables. Fields are separated by `|`."""


class LoadError(Exception):
    pass


def load_users(path):
    """Returns the users of a table: name|email|age."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split("|")]
            if len(parts) != 3:
                raise LoadError(f"{path}:{number}: expected 3 fields, got {len(parts)}")
            try:
                rows.append({"name": parts[0], "email": parts[1].lower(), "age": int(parts[2])})
            except ValueError as error:
                raise LoadError(f"{path}:{number}: {error}")
    return rows


def load_orders(path):
    """Returns the orders of a table: id|user|quantity|sku."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split("|")]
            if len(parts) != 4:
                raise LoadError(f"{path}:{number}: expected 4 fields, got {len(parts)}")
            try:
                row = {"id": int(parts[0]), "user": parts[1], "quantity": int(parts[2] or "1"), "sku": parts[3].upper()}
            except ValueError as error:
                raise LoadError(f"{path}:{number}: {error}")
            rows.append(row)
    return rows


def load_products(path):
    """Returns the products of a table: sku|title|price, the price in cents."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split("|")]
            if len(parts) != 3:
                raise LoadError(f"{path}:{number}: expected 3 fields, got {len(parts)}")
            try:
                rows.append({"sku": parts[0].upper(), "title": parts[1], "price": round(float(parts[2]) * 100)})
            except ValueError as error:
                raise LoadError(f"{path}:{number}: {error}")
    return rows
