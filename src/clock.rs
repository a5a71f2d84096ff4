//! Time and randomness, handed in as a parameter, so that what is decided can be decided again in a test.
//!
//! Leases are the exception: the database's clock judges them, since workers' clocks differ.

use time::OffsetDateTime;
use uuid::Uuid;

/// Where the time and new ids come from.
pub trait Clock: Send + Sync {
    /// The time, in UTC.
    fn now(&self) -> OffsetDateTime;

    /// A new id: a UUID of version 7, so that ids sort by their age.
    fn new_id(&self) -> Uuid;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place where time and ids come from"
)]
impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        // Microseconds, which is what PostgreSQL keeps: a time reads back as it was written.
        let now = OffsetDateTime::now_utc();
        now.replace_nanosecond(now.nanosecond() / 1_000 * 1_000)
            .unwrap_or(now)
    }

    fn new_id(&self) -> Uuid {
        Uuid::now_v7()
    }
}
