-- Who there is, and what is declared.

CREATE TABLE users (
    id      text PRIMARY KEY,
    name    text NOT NULL,
    admin   boolean NOT NULL,
    enabled boolean NOT NULL
);

CREATE TABLE user_groups (
    id text PRIMARY KEY
);

CREATE TABLE memberships (
    user_id  text NOT NULL REFERENCES users (id),
    group_id text NOT NULL REFERENCES user_groups (id),
    PRIMARY KEY (user_id, group_id)
);

CREATE TABLE group_grants (
    group_id   text NOT NULL REFERENCES user_groups (id),
    grant_name text NOT NULL,
    PRIMARY KEY (group_id, grant_name)
);

CREATE TABLE service_accounts (
    id      text PRIMARY KEY,
    name    text NOT NULL,
    enabled boolean NOT NULL
);

CREATE TABLE account_scopes (
    account_id text NOT NULL REFERENCES service_accounts (id),
    scope      text NOT NULL,
    PRIMARY KEY (account_id, scope)
);

-- Immutable: a version is written once and never changed.
CREATE TABLE catalogue_versions (
    version    bigint PRIMARY KEY,
    source     text NOT NULL,
    applied_by text,
    applied_at timestamptz NOT NULL
);
