import os
import tempfile
import unittest

import invoices


class Totals(unittest.TestCase):
    def total(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "in.csv")
            with open(path, "w", newline="") as file:
                file.write(text)
            return invoices.total_by_customer(path)

    def test_plain(self):
        text = "id,customer,amount\n1,Fern Books,10.00\n2,Fern Books,2.50\n3,Oak Tools,7.25\n"
        self.assertEqual(self.total(text), {"Fern Books": 1250, "Oak Tools": 725})

    def test_no_rows(self):
        self.assertEqual(self.total("id,customer,amount\n"), {})


if __name__ == "__main__":
    unittest.main()
