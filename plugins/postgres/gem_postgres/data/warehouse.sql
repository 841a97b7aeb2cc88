-- A warehouse: suppliers, products, stock at three places, and orders with their lines.
CREATE TABLE suppliers (
    supplier_id serial PRIMARY KEY,
    name text NOT NULL UNIQUE,
    country text NOT NULL
);
CREATE TABLE products (
    product_id serial PRIMARY KEY,
    sku text NOT NULL UNIQUE,
    name text NOT NULL,
    category text NOT NULL,
    price numeric(10, 2) NOT NULL,
    supplier_id integer NOT NULL REFERENCES suppliers,
    discontinued boolean NOT NULL DEFAULT false
);
CREATE TABLE stock (
    product_id integer NOT NULL REFERENCES products,
    place text NOT NULL,
    quantity integer NOT NULL,
    PRIMARY KEY (product_id, place)
);
CREATE TABLE orders (
    order_id serial PRIMARY KEY,
    customer text NOT NULL,
    placed date NOT NULL,
    status text NOT NULL
);
CREATE TABLE order_lines (
    order_id integer NOT NULL REFERENCES orders,
    product_id integer NOT NULL REFERENCES products,
    quantity integer NOT NULL,
    price numeric(10, 2) NOT NULL,
    PRIMARY KEY (order_id, product_id)
);

INSERT INTO suppliers (name, country) VALUES
    ('Norden Metall', 'Germany'), ('Bright Tools', 'Ireland'), ('Casa Verde', 'Portugal'), ('Okawa Works', 'Japan'),
    ('Bright Tools Ltd', 'Ireland'), ('Delta Paper', 'Poland');
INSERT INTO products (sku, name, category, price, supplier_id, discontinued)
SELECT (ARRAY['TL', 'GD', 'PP', 'KT'])[1 + i % 4] || '-' || (100 + i * 7),
    (ARRAY['small', 'large', 'folding', 'steel', 'wooden'])[1 + i % 5] || ' '
        || (ARRAY['hammer', 'rake', 'notebook', 'pan'])[1 + i % 4] || ' ' || (1 + i / 4),
    (ARRAY['tools', 'garden', 'paper', 'kitchen'])[1 + i % 4],
    round(2.95 + (i * 31) % 97 + (i % 10) * 0.1, 2), 1 + i % 6, i % 11 = 4
FROM generate_series(0, 59) AS i ORDER BY i;
INSERT INTO stock
SELECT product_id, place, CASE WHEN (product_id * 5 + n) % 23 = 0 THEN -3 - product_id % 4 ELSE (product_id * 17 + n * 7) % 41 END
FROM products, (VALUES ('main', 0), ('annex', 1), ('shop', 2)) AS places (place, n)
WHERE (product_id + n) % 5 <> 0 AND product_id % 13 <> 7 ORDER BY product_id, n;
INSERT INTO orders (customer, placed, status)
SELECT (ARRAY['Ines Moreau <ines@moreau.example>', 'Jonas Falk <jonas@falk.example>', 'Kim Tran <kim@tran.example>',
        'Lucia Neri <lucia@neri.example>', 'Mats Holm <mats@holm.example>', 'Nora Quinn <nora@quinn.example>',
        'Omar Saleh <omar@saleh.example>', 'Petra Vogel <petra@vogel.example>', 'Rui Lopes <rui@lopes.example>'])[1 + (i * i) % 9],
    date '2026-01-05' + (i * 7) % 170, (ARRAY['shipped', 'open', 'shipped', 'paid', 'open', 'shipped'])[1 + i % 6]
FROM generate_series(0, 89) AS i ORDER BY i;
INSERT INTO order_lines
SELECT order_id, product_id, 1 + (order_id * 3 + product_id) % 7, price
FROM orders, products
WHERE (order_id * 7 + product_id * 5) % 29 = 0 AND order_id % 10 <> 6 ORDER BY order_id, product_id;
