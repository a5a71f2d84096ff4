//! Countersign: the release gate for AI agents' writes.
//!
//! A run pauses when its model asks for something that needs a human. Countersign takes the decision from a queue, claims the
//! run, checks that the approver could have run every write themselves, records the approval, and runs the turn as
//! the run's owner; or it hands the run back. `ARCHITECTURE.md` walks one job through these rooms, in the order in
//! which it meets them.

pub mod model;
pub mod declaration;
pub mod catalogue;
pub mod policy;
pub mod gate;

pub mod store;
pub mod identity;
pub mod engine;

pub mod resume;

pub mod clock;
pub mod retry;
