//! The table of verbs: which function does what.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;

use super::{
    Result, Sql, attempts, catalogue, claim, decisions, directory, events, failed, reconciliation, runs,
    step, workers,
};
use crate::model::{
    Actor, CallRecord, Decision, DecisionId, Event, EventId, Job, Lease, NewEvent, Run, RunId, RunStatus,
    SealedState, TurnOrdinal, WorkerName,
};
use crate::store::{
    Cancelled, CatalogueVersion, ClaimRequest, ClaimScope, Directory, DirectoryEntry, Guarded, Mint, NewRun,
    Reaped, Renewed, RunFilter, Step, Store,
};

#[async_trait]
impl Store for Sql {
    async fn ping(&self) -> Result<()> {
        sqlx::query("SELECT 1")
            .execute(self.pool())
            .await
            .map(drop)
            .map_err(failed)
    }

    fn bell(&self) -> Arc<Notify> {
        Arc::clone(&self.bell)
    }

    async fn create_run(&self, new: &NewRun) -> Result<()> {
        runs::create(self, new).await
    }

    async fn run(&self, id: RunId) -> Result<Option<Run>> {
        runs::get(self, id).await
    }

    async fn run_with_state(&self, id: RunId) -> Result<Option<(Run, SealedState)>> {
        runs::get_with_state(self, id).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<Run>> {
        runs::list(self, filter).await
    }

    async fn count_runs(&self) -> Result<Vec<(RunStatus, i64)>> {
        runs::count(self).await
    }

    async fn calls(&self, run: RunId, turn: Option<TurnOrdinal>) -> Result<Vec<CallRecord>> {
        let mut connection = self.pool().acquire().await.map_err(failed)?;
        runs::calls(&mut connection, run, turn).await
    }

    async fn cancel(&self, run: RunId, by: &Actor, event: &NewEvent) -> Result<Cancelled> {
        runs::cancel(self, run, by, event).await
    }

    async fn unknown_outcomes(&self, before: Option<RunId>, limit: u32) -> Result<Vec<(Run, CallRecord)>> {
        reconciliation::unknown_outcomes(self, before, limit).await
    }

    async fn reconcile(&self, call: &CallRecord, events: &[NewEvent]) -> Result<Guarded> {
        reconciliation::reconcile(self, call, events).await
    }

    async fn record_decision(&self, decision: &Decision, event: &NewEvent) -> Result<()> {
        decisions::record(self, decision, event).await
    }

    async fn decision(&self, id: DecisionId) -> Result<Option<Decision>> {
        decisions::get(self, id).await
    }

    async fn decisions(&self, run: RunId) -> Result<Vec<Decision>> {
        decisions::of_run(self, run).await
    }

    async fn standing(&self, run: RunId, turn: TurnOrdinal) -> Result<Option<Decision>> {
        decisions::standing(self, run, turn).await
    }

    async fn refuse(&self, decision: DecisionId, code: &str, events: &[NewEvent]) -> Result<Guarded> {
        decisions::refuse(self, decision, code, events).await
    }

    async fn revoke(&self, decision: DecisionId, event: &NewEvent) -> Result<Guarded> {
        decisions::revoke(self, decision, event).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Option<Box<dyn ClaimScope>>> {
        claim::claim(self, request).await
    }

    async fn step(&self, run: RunId, lease: &Lease, step: &Step) -> Result<Guarded> {
        step::step(self, run, lease, step).await
    }

    async fn renew(&self, run: RunId, lease: &Lease, ttl: Duration) -> Result<Renewed> {
        step::renew(self, run, lease, ttl).await
    }

    async fn begin_attempt(&self, job: &Job) -> Result<u32> {
        attempts::begin(self, job).await
    }

    async fn end_attempts(&self, job: &Job) -> Result<()> {
        attempts::end(self, job).await
    }

    async fn hold_duty(&self, duty: &str, worker: &WorkerName, ttl: Duration) -> Result<bool> {
        workers::hold_duty(self, duty, worker, ttl).await
    }

    async fn outbox(&self, limit: u32) -> Result<Vec<Event>> {
        workers::outbox(self, limit).await
    }

    async fn outbox_depth(&self) -> Result<i64> {
        workers::outbox_depth(self).await
    }

    async fn mark_published(&self, events: &[EventId]) -> Result<()> {
        workers::mark_published(self, events).await
    }

    async fn reap(&self, limit: u32, max_requeues: u32, mint: &dyn Mint) -> Result<Vec<Reaped>> {
        workers::reap(self, limit, max_requeues, mint).await
    }

    async fn expire(&self, limit: u32, mint: &dyn Mint) -> Result<Vec<RunId>> {
        workers::expire(self, limit, mint).await
    }

    async fn cancel_requested(&self, limit: u32, mint: &dyn Mint) -> Result<Vec<RunId>> {
        workers::cancel_requested(self, limit, mint).await
    }

    async fn rewake(&self, after: Duration, limit: u32) -> Result<u64> {
        workers::rewake(self, after, limit).await
    }

    async fn events(&self, run: Option<RunId>, after: i64, limit: u32) -> Result<Vec<Event>> {
        events::list(self, run, after, limit).await
    }

    async fn directory(&self) -> Result<Directory> {
        directory::list(self).await
    }

    async fn replace_directory(&self, directory: &Directory, event: &NewEvent) -> Result<()> {
        directory::replace(self, directory, event).await
    }

    async fn set_enabled(&self, actor: &Actor, enabled: bool, event: &NewEvent) -> Result<Guarded> {
        directory::set_enabled(self, actor, enabled, event).await
    }

    async fn directory_entry(&self, actor: &Actor) -> Result<Option<DirectoryEntry>> {
        let mut connection = self.pool().acquire().await.map_err(failed)?;
        directory::entry(&mut connection, actor).await
    }

    async fn apply_catalogue(&self, source: &str, by: Option<&Actor>, event: &NewEvent) -> Result<i64> {
        catalogue::apply(self, source, by, event).await
    }

    async fn current_version(&self) -> Result<Option<i64>> {
        let mut connection = self.pool().acquire().await.map_err(failed)?;
        catalogue::current_version(&mut connection).await
    }

    async fn catalogue(&self, version: i64) -> Result<Option<CatalogueVersion>> {
        let mut connection = self.pool().acquire().await.map_err(failed)?;
        catalogue::get(&mut connection, version).await
    }
}
