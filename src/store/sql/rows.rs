//! Row to model: the one fallible place. A row that cannot be read names its table, key and column.

use sqlx::Row as _;
use time::OffsetDateTime;

use super::{Db, Result, Row, StoreError};
use crate::model::{
    Actor, CallRecord, CallStatus, ClaimedRun, Decision, DecisionStatus, Effect, Event, EventKind, Failure,
    FailureCode, Lease, NewEvent, Run, RunStatus, SealedState, TurnDigest, TurnOrdinal, Verdict, WorkerName,
};
use crate::store::row::{Key, Stamp};

/// One row, and what to call it when it cannot be read.
struct Reader<'r> {
    row: &'r Row,
    table: &'static str,
    id: String,
}

impl<'r> Reader<'r> {
    fn new(row: &'r Row, table: &'static str) -> Result<Self> {
        let id = row.try_get::<Key, _>("id").map(|key| key.0.to_string());
        Ok(Self {
            row,
            table,
            id: id.unwrap_or_else(|_| "?".to_owned()),
        })
    }

    fn corrupt(&self, column: &'static str, problem: impl ToString) -> StoreError {
        StoreError::CorruptRow {
            table: self.table,
            id: self.id.clone(),
            column,
            problem: problem.to_string(),
        }
    }

    fn get<T>(&self, column: &'static str) -> Result<T>
    where
        T: for<'d> sqlx::Decode<'d, Db> + sqlx::Type<Db>,
    {
        self.row
            .try_get(column)
            .map_err(|error| self.corrupt(column, error))
    }

    fn parsed<T>(&self, column: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T> {
        let text: String = self.get(column)?;
        parse(&text).ok_or_else(|| self.corrupt(column, "holds a value that this build does not know"))
    }

    fn optional<T>(&self, column: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>> {
        let text: Option<String> = self.get(column)?;
        text.map(|text| {
            parse(&text).ok_or_else(|| self.corrupt(column, "holds a value that this build does not know"))
        })
        .transpose()
    }

    fn time(&self, column: &'static str) -> Result<OffsetDateTime> {
        self.get::<Stamp>(column).map(|stamp| stamp.0)
    }

    fn optional_time(&self, column: &'static str) -> Result<Option<OffsetDateTime>> {
        Ok(self.get::<Option<Stamp>>(column)?.map(|stamp| stamp.0))
    }

    fn count(&self, column: &'static str) -> Result<u32> {
        u32::try_from(self.get::<i32>(column)?).map_err(|_| self.corrupt(column, "is negative"))
    }
}

fn actor(text: &str) -> Option<Actor> {
    text.parse().ok()
}

/// The columns of `run_of`.
macro_rules! run_columns {
    () => {
        "id, owner, configuration, status, turn, failure_code, failure_detail, claimed_by, epoch, requeues, \
         created_at, updated_at, deadline"
    };
}
pub(super) use run_columns;

pub(super) fn run_of(row: &Row) -> Result<Run> {
    let row = Reader::new(row, "runs")?;
    let failure = match row.optional("failure_code", FailureCode::parse)? {
        Some(code) => {
            let detail: Option<String> = row.get("failure_detail")?;
            Some(Failure {
                code,
                detail: detail.unwrap_or_default(),
            })
        }
        None => None,
    };
    Ok(Run {
        id: row.get::<Key>("id")?.0.into(),
        owner: row.parsed("owner", actor)?,
        configuration: row.get("configuration")?,
        status: row.parsed("status", RunStatus::parse)?,
        turn: TurnOrdinal(row.count("turn")?),
        failure,
        claimed_by: row.get::<Option<String>>("claimed_by")?.map(WorkerName::from),
        epoch: row.get("epoch")?,
        requeues: row.count("requeues")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
        deadline: row.optional_time("deadline")?,
    })
}

pub(super) fn state_of(row: &Row) -> Result<SealedState> {
    let row = Reader::new(row, "runs")?;
    Ok(SealedState {
        bytes: row.get("state")?,
        seal: row.get("seal")?,
    })
}

pub(super) fn claimed_of(row: &Row) -> Result<ClaimedRun> {
    let run = run_of(row)?;
    let holder = run.claimed_by.clone().ok_or_else(|| StoreError::CorruptRow {
        table: "runs",
        id: run.id.to_string(),
        column: "claimed_by",
        problem: "is empty on a claimed run".to_owned(),
    })?;
    Ok(ClaimedRun {
        lease: Lease {
            holder,
            epoch: run.epoch,
        },
        state: state_of(row)?,
        run,
    })
}

/// The columns of `decision_of`.
macro_rules! decision_columns {
    () => {
        "id, run_id, turn, digest, verdict, actor, comment, status, refusal_code, decided_at"
    };
}
pub(super) use decision_columns;

pub(super) fn decision_of(row: &Row) -> Result<Decision> {
    let row = Reader::new(row, "decisions")?;
    let code: Option<String> = row.get("refusal_code")?;
    let turn: Option<i32> = row.get("turn")?;
    Ok(Decision {
        id: row.get::<Key>("id")?.0.into(),
        run: row.get::<Key>("run_id")?.0.into(),
        turn: turn.and_then(|turn| u32::try_from(turn).ok()).map(TurnOrdinal),
        digest: row.optional("digest", TurnDigest::parse)?,
        verdict: row.parsed("verdict", Verdict::parse)?,
        actor: row.parsed("actor", actor)?,
        comment: row.get("comment")?,
        status: row.parsed("status", |name| DecisionStatus::parse(name, code.as_deref()))?,
        decided_at: row.time("decided_at")?,
    })
}

/// The columns of `call_of`.
macro_rules! call_columns {
    () => {
        "run_id AS id, turn, position, call_id, tool, effect, status, result, started_at, finished_at"
    };
}
pub(super) use call_columns;

pub(super) fn call_of(row: &Row) -> Result<CallRecord> {
    let row = Reader::new(row, "calls")?;
    let result: Option<Vec<u8>> = row.get("result")?;
    let result = result
        .map(|bytes| String::from_utf8(bytes).map_err(|_| row.corrupt("result", "is not UTF-8")))
        .transpose()?;
    Ok(CallRecord {
        run: row.get::<Key>("id")?.0.into(),
        turn: TurnOrdinal(row.count("turn")?),
        position: row.count("position")?,
        call: row.get::<String>("call_id")?.into(),
        tool: row.get::<String>("tool")?.into(),
        effect: row.parsed("effect", Effect::parse)?,
        status: row.parsed("status", CallStatus::parse)?,
        result,
        started_at: row.optional_time("started_at")?,
        finished_at: row.optional_time("finished_at")?,
    })
}

/// The columns of `event_of`.
macro_rules! event_columns {
    () => {
        "position, id, run_id, kind, actor, at, data, published_at, wakes"
    };
}
pub(super) use event_columns;

pub(super) fn event_of(row: &Row) -> Result<Event> {
    let row = Reader::new(row, "events")?;
    Ok(Event {
        position: row.get("position")?,
        published_at: row.optional_time("published_at")?,
        wakes: row.count("wakes")?,
        event: NewEvent {
            id: row.get::<Key>("id")?.0.into(),
            run: row.get::<Option<Key>>("run_id")?.map(|key| key.0.into()),
            kind: row.parsed("kind", EventKind::parse)?,
            actor: row.optional("actor", actor)?,
            at: row.time("at")?,
            data: row.get::<sqlx::types::Json<serde_json::Value>>("data")?.0,
        },
    })
}

pub(super) fn all<T>(rows: &[Row], read: impl Fn(&Row) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(read).collect()
}
