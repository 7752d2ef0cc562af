#!/bin/bash
sqlite3 loans.db 'SELECT DISTINCT title FROM books JOIN loans ON book = id WHERE returned IS NULL ORDER BY title' > out.txt
