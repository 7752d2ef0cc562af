CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT NOT NULL);
CREATE TABLE loans (book INTEGER NOT NULL REFERENCES books, member TEXT NOT NULL, returned TEXT);
INSERT INTO books VALUES (1, 'Tides'), (2, 'Knots and Splices'), (3, 'A Field Guide to Moss'), (4, 'Bread');
INSERT INTO loans VALUES (1, 'm1', '2024-01-02'), (1, 'm2', NULL), (3, 'm1', NULL), (4, 'm3', '2024-02-01');
