//! Run: the segment, as the owner, under a lease that is renewed beside it.

use super::claim::Leased;
use super::world::LeasedWorld;
use super::{Path, Stop};
use crate::engine::{self, Ended};
use crate::gate::Catalogued;
use crate::model::Run;

/// A segment that has ended, and what it takes to settle it.
pub(super) struct Finished {
    pub(super) world: LeasedWorld,
    pub(super) run: Run,
    pub(super) at: Catalogued,
    pub(super) ended: Ended,
}

/// Runs a segment to its end.
pub(super) async fn run(path: &Path, leased: Leased) -> Result<Finished, Stop> {
    let Leased { segment, lease } = leased;
    let (run, at) = (segment.run.clone(), segment.at.clone());
    let mut world = LeasedWorld::enter(path, run.id, run.owner.clone(), lease);
    let ended = engine::go_on(&path.engine, &mut world, segment)
        .await
        .map_err(Stop::LetGo)?;
    Ok(Finished {
        world,
        run,
        at,
        ended,
    })
}
