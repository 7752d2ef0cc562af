"""Reads exports with quotes, commas, line breaks, a byte order mark and CRLF."""
import os
import sys
import tempfile

sys.path.insert(0, os.getcwd())
import invoices

failures = []


def check(name, data, expected):
    path = os.path.join(tempfile.mkdtemp(), "in.csv")
    with open(path, "wb") as file:
        file.write(data)
    try:
        got = invoices.total_by_customer(path)
    except Exception as error:
        failures.append(f"{name}: {type(error).__name__}: {error}")
        return
    if got != expected:
        failures.append(f"{name}: wanted {expected}, got {got}")
    elif any(type(value) is not int for value in got.values()):
        failures.append(f"{name}: totals must be int: {got}")


check("plain", b"id,customer,amount\n1,A,10.00\n2,A,2.5\n3,B,7\n", {"A": 1250, "B": 700})
check("quotes", b'customer,amount\n"Fox, Hare",1.10\n"The ""Old"" Mill",2.20\n', {"Fox, Hare": 110, 'The "Old" Mill': 220})
check("thousands", b'amount,customer\n"1,234.50",A\n"-1,000,000.01",B\n', {"A": 123450, "B": -100000001})
check("line break", b'note,customer,amount\n"a\nb",A,1.00\n,"C\nD",2.00\n', {"A": 100, "C\nD": 200})
check("crlf", b"customer,amount\r\nA,1.00\r\nB,2.00\r\n", {"A": 100, "B": 200})
check("byte order mark", b"\xef\xbb\xbfcustomer,amount\nA,1.00\n", {"A": 100})
check("quoted header after the mark", b'\xef\xbb\xbf"amount","customer"\r\n"3.00","A"\r\n', {"A": 300})
check("exact", b"customer,amount\n" + b"A,0.29\nA,19.99\nA,1.15\n" * 100, {"A": 214300})
check("negative", b"customer,amount\nA,-0.29\nA,-0.01\n", {"A": -30})
check("empty amount", b'customer,amount\nA,\nB,""\nC,1.00\n', {"C": 100})
check("not ascii", "customer,amount\nCafé Über,1.00\n".encode(), {"Café Über": 100})
with open("export-2024-03.csv", "rb") as file:
    check("the export", file.read(), {"Lamp, Shade & Co": 100000, "Oak Tools": 2028})

if failures:
    print("\n".join(failures))
    sys.exit(1)
print("all exports are read")
