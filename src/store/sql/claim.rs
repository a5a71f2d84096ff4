//! The claim: one transaction from the guarded update to the commit that makes the run this worker's.

use async_trait::async_trait;

use super::rows::{claimed_of, run_columns};
use super::{Result, Sql, Tx, catalogue, decisions, directory, events, failed, runs, step};
use crate::model::{Actor, CallRecord, ClaimedRun, DecisionId, Failure, NewEvent};
use crate::store::row::Key;
use crate::store::{
    CatalogueVersion, ClaimRequest, ClaimScope, DirectoryEntry, End, Guarded, Step, StoreError, micros,
};

/// A claim in the making. Dropped, it rolls back.
struct Scope {
    tx: Tx,
    claimed: ClaimedRun,
    bell: std::sync::Arc<tokio::sync::Notify>,
}

pub(super) async fn claim(store: &Sql, request: &ClaimRequest) -> Result<Option<Box<dyn ClaimScope>>> {
    let mut tx = Tx::begin(store).await.map_err(failed)?;
    let row = sqlx::query(concat!(
        "UPDATE runs SET status = 'running', claimed_by = $3, epoch = epoch + 1, lease_until = ",
        ahead!("$4"),
        ", updated_at = ",
        now!(),
        " WHERE id = $1 AND status = $2 AND cancel_requested_by IS NULL AND (status = 'queued' OR deadline IS NULL OR deadline > ",
        now!(),
        ") RETURNING ",
        run_columns!(),
        ", state, seal"
    ))
    .bind(Key(request.run.uuid()))
    .bind(request.from.as_str())
    .bind(request.worker.as_str())
    .bind(micros(request.ttl))
    .fetch_optional(tx.connection())
    .await
    .map_err(failed)?;
    let Some(row) = row else { return Ok(None) };
    let claimed = claimed_of(&row)?;
    Ok(Some(Box::new(Scope {
        tx,
        claimed,
        bell: std::sync::Arc::clone(&store.bell),
    })))
}

impl Scope {
    async fn commit_and_ring(self) -> Result<Guarded> {
        self.tx.commit().await.map_err(failed)?;
        self.bell.notify_one();
        Ok(Guarded::Done)
    }
}

#[async_trait]
impl ClaimScope for Scope {
    fn claimed(&self) -> &ClaimedRun {
        &self.claimed
    }

    async fn directory_entry(&mut self, actor: &Actor) -> Result<Option<DirectoryEntry>> {
        directory::entry(self.tx.connection(), actor).await
    }

    async fn current_version(&mut self) -> Result<Option<i64>> {
        catalogue::current_version(self.tx.connection()).await
    }

    async fn catalogue(&mut self, version: i64) -> Result<Option<CatalogueVersion>> {
        catalogue::get(self.tx.connection(), version).await
    }

    async fn calls(&mut self) -> Result<Vec<CallRecord>> {
        runs::calls(
            self.tx.connection(),
            self.claimed.run.id,
            Some(self.claimed.run.turn),
        )
        .await
    }

    async fn record(&mut self, event: &NewEvent) -> Result<()> {
        events::insert_behind_savepoint(self.tx.connection(), std::slice::from_ref(event)).await
    }

    async fn commit(
        mut self: Box<Self>,
        decision: Option<DecisionId>,
        calls: &[CallRecord],
    ) -> Result<Guarded> {
        if let Some(id) = decision
            && decisions::mark_standing(self.tx.connection(), id).await? == Guarded::Lost
        {
            return Ok(Guarded::Lost);
        }
        step::write_calls(self.tx.connection(), calls).await?;
        self.commit_and_ring().await
    }

    async fn hand_back(
        mut self: Box<Self>,
        decision: DecisionId,
        code: &str,
        told: &[NewEvent],
    ) -> Result<Guarded> {
        if decisions::mark_refused(self.tx.connection(), decision, code).await? == Guarded::Lost {
            return Ok(Guarded::Lost);
        }
        let rows = sqlx::query(
            "UPDATE runs SET status = 'waiting_for_approval', claimed_by = NULL, lease_until = NULL \
             WHERE id = $1 AND status = 'running' AND claimed_by = $2 AND epoch = $3",
        )
        .bind(Key(self.claimed.run.id.uuid()))
        .bind(self.claimed.lease.holder.as_str())
        .bind(self.claimed.lease.epoch)
        .execute(self.tx.connection())
        .await
        .map_err(failed)?
        .rows_affected();
        if rows == 0 {
            return Ok(Guarded::Lost);
        }
        events::tell(self.tx.connection(), told).await?;
        self.commit_and_ring().await
    }

    async fn fail(
        mut self: Box<Self>,
        decision: Option<DecisionId>,
        failure: &Failure,
        told: &[NewEvent],
    ) -> Result<()> {
        if let Some(id) = decision {
            // Whether it was still pending does not matter: the run ends either way.
            let _ = decisions::mark_refused(self.tx.connection(), id, failure.code.as_str()).await?;
        }
        let step = Step {
            end: Some(End::Fail(failure.clone())),
            events: told.to_vec(),
            ..Step::default()
        };
        let (run, lease) = (self.claimed.run.id, self.claimed.lease.clone());
        match step::write(self.tx.connection(), run, &lease, &step).await? {
            Guarded::Done => self.commit_and_ring().await.map(drop),
            Guarded::Lost => Err(StoreError::Failed(sqlx::Error::RowNotFound)),
        }
    }
}
