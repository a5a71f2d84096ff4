//! Countersign: the release gate for AI agents' writes.
//!
//! A run pauses when its model asks for something that needs a human. Countersign takes the decision from a
//! queue, claims the run, checks that the approver could have run every write themselves, records the approval,
//! and runs the turn as the run's owner; or it hands the run back. `ARCHITECTURE.md` walks one job through
//! these rooms, in the order in which it meets them.

// Pure: no clock, no network, no database, no async.
pub mod catalogue;
pub mod declaration;
pub mod gate;
pub mod model;
pub mod policy;

// The world.
pub mod broker;
pub mod engine;
pub mod identity;
pub mod store;

// The path.
pub mod resume;
pub mod worker;

// The surfaces.
pub mod cli;
pub mod http;

// What every room of the world may use.
pub mod clock;
pub mod config;
pub mod retry;
pub mod telemetry;
