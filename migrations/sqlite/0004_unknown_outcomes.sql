-- What waits for an operator's word.

CREATE INDEX runs_by_unknown_outcome ON runs (id DESC) WHERE failure_code = 'write_outcome_unknown';
