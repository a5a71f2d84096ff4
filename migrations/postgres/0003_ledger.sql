-- The demo's ledger, behind the builtin tools.

CREATE TABLE ledger_payments (
    id             text PRIMARY KEY,
    customer       text NOT NULL,
    amount_cents   bigint NOT NULL,
    refunded_cents bigint NOT NULL DEFAULT 0,
    CHECK (refunded_cents BETWEEN 0 AND amount_cents)
);

CREATE TABLE ledger_refunds (
    -- The call's idempotency key: one refund for each.
    key          text PRIMARY KEY,
    payment_id   text NOT NULL REFERENCES ledger_payments (id),
    amount_cents bigint NOT NULL
);
