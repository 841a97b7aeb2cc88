-- An evening school: students, teachers, courses and who takes them. No key holds enrolments to their students.
CREATE TABLE students (
    student_id serial PRIMARY KEY,
    name text NOT NULL,
    city text NOT NULL,
    started date NOT NULL,
    finished date
);
CREATE TABLE teachers (
    teacher_id serial PRIMARY KEY,
    name text NOT NULL,
    hours integer NOT NULL
);
CREATE TABLE courses (
    course_id serial PRIMARY KEY,
    title text NOT NULL,
    teacher_id integer REFERENCES teachers,
    weekly_hours integer NOT NULL,
    ends date NOT NULL
);
CREATE TABLE enrolments (
    student_id integer NOT NULL,
    course_id integer NOT NULL REFERENCES courses,
    grade integer,
    PRIMARY KEY (student_id, course_id)
);

INSERT INTO students (name, city, started, finished)
SELECT (ARRAY['Alma', 'Boris', 'Chen', 'Dana', 'Emil', 'Fatou', 'Goran', 'Hilda', 'Igor'])[1 + i % 9] || ' '
        || (ARRAY['Weber', 'Silva', 'Novak', 'Keita', 'Olsen'])[1 + i % 5],
    (ARRAY['Porto', 'Lyon', 'porto ', 'Graz', 'LYON', 'Graz', ' Turku'])[1 + i % 7], date '2022-09-01' + (i * 23) % 900,
    CASE WHEN i % 4 = 1 THEN date '2025-07-01' + i END
FROM generate_series(0, 44) AS i ORDER BY i;
INSERT INTO teachers (name, hours) VALUES
    ('Prof. Ilves', 10), ('Dr. Marin', 12), ('Ms. Oduya', 8), ('Mr. Pires', 16), ('Dr. Sato', 10), ('Ms. Tran', 6);
INSERT INTO courses (title, teacher_id, weekly_hours, ends)
SELECT (ARRAY['Algebra', 'Spanish', 'Welding', 'History', 'Statistics', 'Drawing'])[1 + i % 6] || ' ' || (1 + i / 6),
    CASE WHEN i % 8 = 5 THEN NULL ELSE 1 + (i * 5) % 6 END, 2 + (i * 3) % 4, date '2026-01-31' + (i % 3) * 75
FROM generate_series(0, 17) AS i ORDER BY i;
INSERT INTO enrolments
SELECT 1 + (i * 7) % 50, 1 + (i * 5 + i / 50) % 18, CASE WHEN i % 6 <> 4 THEN 35 + (i * 19) % 66 END
FROM generate_series(0, 239) AS i ORDER BY i ON CONFLICT DO NOTHING;
