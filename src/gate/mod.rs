//! The gates between a decision and its effect: look, then bind → permit → record.
//!
//! The gates are types. A [`Claim`] becomes a [`Bound`], that a [`Permitted`], that a [`Cleared`]; each is
//! consumed by the next step, and none can be made otherwise, so a clearance can neither be forged, nor
//! used twice, nor be had by skipping a gate. The engine runs a turn only against a `&Cleared`.
//!
//! ```compile_fail
//! // A clearance cannot be written down,
//! let cleared = countersign::gate::Cleared { run: todo!(), turn: todo!(), clearance: todo!() };
//! ```
//! ```compile_fail
//! // nor recorded without having been permitted,
//! fn skip(bound: countersign::gate::Bound) {
//!     let _ = bound.record(countersign::gate::Recording::Kept);
//! }
//! ```
//! ```compile_fail
//! // nor permitted twice.
//! use countersign::{catalogue::Catalogue, gate::{Bound, Catalogued}};
//! fn twice(bound: Bound, at: &Catalogued) {
//!     let _ = bound.permit(at, None);
//!     let _ = bound.permit(at, None);
//! }
//! ```
//!
//! Beside the path stand two questions that are asked before anything happens: [`simulate()`], what would become of a
//! call, and [`could_release`], would this actor's approval stand. They ask the same functions and change nothing.
//!
//! Everything here is pure: the facts are handed in, and what comes out is a value. The room knows nothing
//! of databases, brokers, models and time.

mod bind;
mod cleared;
#[cfg(test)]
mod golden;
mod look;
mod permit;
mod record;
mod refusal;
#[cfg(test)]
pub(crate) mod sample;
mod simulate;
mod who_can;

use std::sync::Arc;

pub use bind::{Bound, Claim, NotBound};
pub use cleared::{Clearance, Cleared, Screened, screen};
pub use look::{Facts, Seen, look};
pub use permit::Permitted;
pub use record::Recording;
pub use refusal::{Refusal, WhoCanAct};
pub use simulate::{Axis, Foreseen, NOT_COVERED, Outcome, Row, Simulation, simulate};
pub use who_can::{Waiting, could_release};

use crate::catalogue::{Catalogue, Configuration};

/// A catalogue and the version it is, so that every judgement can say what it was judged by.
#[derive(Clone, Debug)]
pub struct Catalogued {
    /// The version's number.
    pub version: i64,
    /// What it declares.
    pub catalogue: Arc<Catalogue>,
}

impl Catalogued {
    /// What holds before the first version is applied: nothing is declared.
    #[must_use]
    pub fn none() -> Self {
        Self {
            version: 0,
            catalogue: Arc::new(Catalogue::empty()),
        }
    }

    /// The configuration of that name, with everything it needs.
    ///
    /// # Errors
    /// [`Refusal::ConfigurationGone`], naming what is missing.
    pub fn configuration(&self, name: &str) -> Result<&Configuration, Refusal> {
        let gone = |missing: String| Refusal::ConfigurationGone { missing };
        let configuration = self
            .catalogue
            .configurations
            .get(name)
            .ok_or_else(|| gone(format!("configuration `{name}`")))?;
        let model = self
            .catalogue
            .models
            .get(&configuration.model)
            .ok_or_else(|| gone(format!("model `{}`", configuration.model)))?;
        if !self.catalogue.providers.contains_key(&model.provider) {
            return Err(gone(format!("provider `{}`", model.provider)));
        }
        Ok(configuration)
    }
}
