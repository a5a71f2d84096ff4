-- Runs, their decisions, the journal of their calls, and what happened to them.
-- Times are microseconds since 1970 in UTC, ids are hyphenated text, truth is 0 or 1.

CREATE TABLE runs (
    id                  text PRIMARY KEY,
    owner               text NOT NULL,
    configuration       text NOT NULL,
    status              text NOT NULL,
    turn                integer NOT NULL,
    -- The sealed state: bytes, never text, so that it reads back as it was written.
    state               blob NOT NULL,
    seal                text NOT NULL,
    failure_code        text,
    failure_detail      text,
    claimed_by          text,
    -- Counts the claims; every write of a worker names the epoch it holds.
    epoch               integer NOT NULL DEFAULT 0,
    lease_until         integer,
    requeues            integer NOT NULL DEFAULT 0,
    cancel_requested_by text,
    created_at          integer NOT NULL,
    updated_at          integer NOT NULL,
    deadline            integer,
    CHECK (status IN ('queued', 'running', 'waiting_for_approval', 'completed', 'failed', 'cancelled', 'expired')),
    -- A run is never running with nobody, and never held by somebody without running.
    CHECK ((status = 'running') = (claimed_by IS NOT NULL)),
    CHECK ((status = 'running') = (lease_until IS NOT NULL))
);

CREATE INDEX runs_by_status ON runs (status, id DESC);
CREATE INDEX runs_by_owner ON runs (owner, id DESC);
CREATE INDEX runs_by_lease ON runs (lease_until) WHERE status = 'running';
CREATE INDEX runs_by_deadline ON runs (deadline) WHERE status = 'waiting_for_approval';

CREATE TABLE decisions (
    id           text PRIMARY KEY,
    run_id       text NOT NULL REFERENCES runs (id),
    turn         integer,
    digest       text,
    verdict      text NOT NULL,
    actor        text NOT NULL,
    comment      text,
    status       text NOT NULL,
    refusal_code text,
    decided_at   integer NOT NULL,
    CHECK (verdict IN ('approve', 'deny')),
    CHECK (status IN ('pending', 'standing', 'refused', 'revoked')),
    CHECK ((status = 'refused') = (refusal_code IS NOT NULL))
);

CREATE INDEX decisions_by_run ON decisions (run_id, id);
CREATE INDEX decisions_pending ON decisions (decided_at) WHERE status = 'pending';
-- At most one decision of a turn stands.
CREATE UNIQUE INDEX decisions_one_stands ON decisions (run_id, turn) WHERE status = 'standing';

CREATE TABLE calls (
    run_id      text NOT NULL REFERENCES runs (id),
    turn        integer NOT NULL,
    position    integer NOT NULL,
    call_id     text NOT NULL,
    tool        text NOT NULL,
    effect      text NOT NULL,
    status      text NOT NULL,
    result      blob,
    started_at  integer,
    finished_at integer,
    PRIMARY KEY (run_id, turn, position),
    UNIQUE (run_id, turn, call_id),
    CHECK (status IN ('pending', 'started', 'succeeded', 'failed', 'refused', 'denied')),
    CHECK ((status IN ('pending', 'started')) = (result IS NULL))
);

CREATE TABLE events (
    position     integer PRIMARY KEY AUTOINCREMENT,
    id           text NOT NULL UNIQUE,
    run_id       text,
    kind         text NOT NULL,
    actor        text,
    at           integer NOT NULL,
    data         text NOT NULL,
    published_at integer,
    -- How often a job was put back into the outbox because nobody had taken it.
    wakes        integer NOT NULL DEFAULT 0
);

CREATE INDEX events_outbox ON events (position) WHERE published_at IS NULL;
CREATE INDEX events_by_run ON events (run_id, position);

-- One worker at a time for what must not be done by two.
CREATE TABLE duties (
    name       text PRIMARY KEY,
    holder     text NOT NULL,
    held_until integer NOT NULL
);
