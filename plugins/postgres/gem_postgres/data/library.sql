-- A public library: members, books with their copies, loans and fines. Its day is 2026-06-30.
CREATE TABLE members (
    member_id serial PRIMARY KEY,
    name text NOT NULL,
    email text NOT NULL,
    joined date NOT NULL,
    status text NOT NULL DEFAULT 'active'
);
CREATE TABLE books (
    book_id serial PRIMARY KEY,
    title text NOT NULL,
    author text NOT NULL,
    genre text NOT NULL,
    year integer NOT NULL
);
CREATE TABLE copies (
    copy_id serial PRIMARY KEY,
    book_id integer NOT NULL REFERENCES books,
    shelf text NOT NULL,
    condition text NOT NULL
);
CREATE TABLE loans (
    loan_id serial PRIMARY KEY,
    copy_id integer NOT NULL REFERENCES copies,
    member_id integer NOT NULL REFERENCES members,
    lent date NOT NULL,
    due date NOT NULL,
    returned date
);
CREATE TABLE fines (
    fine_id serial PRIMARY KEY,
    loan_id integer NOT NULL REFERENCES loans,
    amount numeric(8, 2) NOT NULL,
    paid boolean NOT NULL DEFAULT false
);

INSERT INTO members (name, email, joined)
SELECT first || ' ' || last, lower(first || '.' || last || '@mail.example'), date '2019-01-07' + 61 * i
FROM (
    SELECT i,
        (ARRAY['Ada', 'Bruno', 'Carla', 'Dmitri', 'Elif', 'Farid', 'Greta', 'Hana'])[1 + i % 8] AS first,
        (ARRAY['Aoki', 'Berg', 'Costa', 'Diaz', 'Eriksen', 'Fofana', 'Gruber'])[1 + i % 7] AS last
    FROM generate_series(0, 35) AS i
) AS people ORDER BY i;
-- Four people signed up twice, and wrote their address in another way.
INSERT INTO members (name, email, joined)
SELECT name, CASE member_id % 2 WHEN 0 THEN upper(email) ELSE initcap(email) END, date '2026-02-01' + member_id
FROM members WHERE member_id IN (3, 10, 17, 28) ORDER BY member_id;

INSERT INTO books (title, author, genre, year)
SELECT (ARRAY['The Silent', 'A Brief', 'Beyond the', 'Notes on the', 'The Last'])[1 + i % 5] || ' '
        || (ARRAY['Harbor', 'Orchard', 'Machine', 'Winter', 'Archive', 'River', 'Comet', 'Market'])[1 + i % 8],
    (ARRAY['M. Okafor', 'L. Petrov', 'S. Lindqvist', 'T. Yamada', 'R. Almeida', 'N. Haddad'])[1 + i % 6],
    (ARRAY['novel', 'history', 'science', 'poetry', 'travel', 'crime', 'novel'])[1 + i % 7],
    1950 + (i * 37) % 75
FROM generate_series(0, 39) AS i ORDER BY i;

INSERT INTO copies (book_id, shelf, condition)
SELECT 1 + (i * 13) % 40, chr(65 + i % 6) || (1 + i % 9), (ARRAY['good', 'good', 'worn', 'good', 'new'])[1 + i % 5]
FROM generate_series(0, 89) AS i ORDER BY i;

INSERT INTO loans (copy_id, member_id, lent, due, returned)
SELECT 1 + (i * 29) % 90, 1 + (i * i + 7 * i) % 40, lent, lent + 28,
    CASE WHEN i % 5 = 2 THEN NULL ELSE lent + 9 + (i * 11) % 40 END
FROM (SELECT i, date '2025-08-04' + (i * 3) % 320 AS lent FROM generate_series(0, 219) AS i) AS made ORDER BY i;

INSERT INTO fines (loan_id, amount, paid)
SELECT loan_id, round((returned - due) * 0.2 + 1, 2), loan_id % 3 = 0
FROM loans WHERE returned > due ORDER BY loan_id;
INSERT INTO fines (loan_id, amount) SELECT loan_id, 5 FROM loans WHERE returned IS NULL AND loan_id % 20 = 3 ORDER BY loan_id;
