//! The demo's ledger: a few payments in the same database, which the builtin tools read and refund.

use async_trait::async_trait;

use super::Result;

/// A payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its number, e.g. `P-1001`.
    pub id: String,
    /// Who paid.
    pub customer: String,
    /// In cents.
    pub amount_cents: i64,
    /// Refunded so far, in cents.
    pub refunded_cents: i64,
}

/// Why a refund was not made.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// There is no such payment.
    #[error("there is no payment `{0}`")]
    NoSuchPayment(String),
    /// Not more than nothing.
    #[error("a refund must be of at least 1 cent")]
    Nothing,
    /// More than is left of it.
    #[error("only {left_cents} cents are left of payment `{id}`")]
    TooMuch {
        /// The payment.
        id: String,
        /// What can still be refunded, in cents.
        left_cents: i64,
    },
    /// The database could not do it.
    #[error(transparent)]
    Store(#[from] super::StoreError),
}

/// The ledger's verbs.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Payments, by number.
    async fn payments(&self) -> Result<Vec<LedgerEntry>>;

    /// One payment.
    async fn payment(&self, id: &str) -> Result<Option<LedgerEntry>>;

    /// The refund is made, once for each key: the same key again changes nothing and returns the same payment.
    async fn refund(
        &self,
        id: &str,
        amount_cents: i64,
        key: &str,
    ) -> std::result::Result<LedgerEntry, LedgerError>;

    /// The payment is there, as given; for the demo's seed.
    async fn put_payment(&self, entry: &LedgerEntry) -> Result<()>;

    /// How many refunds have been made.
    async fn refunds(&self) -> Result<i64>;
}
