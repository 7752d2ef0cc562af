"""Totals of invoices by customer."""


def total_by_customer(path):
    """Returns {customer: total in cents} of the CSV file at `path`."""
    totals = {}
    with open(path) as file:
        header = file.readline().strip().split(",")
        customer_at = header.index("customer")
        amount_at = header.index("amount")
        for line in file:
            fields = line.strip().split(",")
            customer = fields[customer_at]
            amount = float(fields[amount_at])
            totals[customer] = totals.get(customer, 0) + int(amount * 100)
    return totals


def report(path):
    """Returns one line per customer, the largest total first."""
    totals = total_by_customer(path)
    lines = []
    for customer, cents in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        sign = "-" if cents < 0 else ""
        lines.append(f"{customer}: {sign}{abs(cents) // 100}.{abs(cents) % 100:02d}")
    return "\n".join(lines)
