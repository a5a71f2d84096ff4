-- Jobs that came before, while one of them is tried: what ends its worker each time is found by its count.

CREATE TABLE attempts (
    -- The decision of a resume job, the run of a start job.
    job      uuid PRIMARY KEY,
    attempts integer NOT NULL,
    begun_at timestamptz NOT NULL
);
