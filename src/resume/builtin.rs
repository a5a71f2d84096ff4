//! The builtin tools of the demo: the ledger, called like any other tool.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalogue::ToolKind;
use crate::engine::tools::{Call, CallEnd, Caller};
use crate::store::{Ledger, LedgerEntry, LedgerError, StoreError};

/// Calls `ledger_list`, `ledger_read` and `ledger_refund`.
pub struct LedgerTools(pub Arc<dyn Ledger>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    payment: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RefundArguments {
    payment: String,
    amount_cents: i64,
}

#[async_trait]
impl Caller for LedgerTools {
    async fn call(&self, call: Call<'_>) -> CallEnd {
        let ToolKind::Builtin { function } = &call.tool.kind else {
            return CallEnd::Failed("this is no builtin tool".to_owned());
        };
        match function.as_str() {
            "ledger_list" => self.list().await,
            "ledger_read" => self.read(&call.call.arguments).await,
            "ledger_refund" => self.refund(&call.call.arguments, call.idempotency_key).await,
            other => CallEnd::Failed(format!("this build has no builtin tool `{other}`")),
        }
    }
}

impl LedgerTools {
    async fn list(&self) -> CallEnd {
        match self.0.payments().await {
            Ok(payments) => {
                CallEnd::Succeeded(json!(payments.iter().map(shown).collect::<Vec<_>>()).to_string())
            }
            Err(error) => CallEnd::Failed(error.to_string()),
        }
    }

    async fn read(&self, arguments: &str) -> CallEnd {
        let ReadArguments { payment } = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return CallEnd::Failed(format!("the arguments do not fit: {error}")),
        };
        match self.0.payment(&payment).await {
            Ok(Some(entry)) => CallEnd::Succeeded(shown(&entry).to_string()),
            Ok(None) => CallEnd::Failed(format!("there is no payment `{payment}`")),
            Err(error) => CallEnd::Failed(error.to_string()),
        }
    }

    async fn refund(&self, arguments: &str, key: &str) -> CallEnd {
        let RefundArguments {
            payment,
            amount_cents,
        } = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => return CallEnd::Failed(format!("the arguments do not fit: {error}")),
        };
        match self.0.refund(&payment, amount_cents, key).await {
            Ok(entry) => CallEnd::Succeeded(
                json!({ "refunded_cents": amount_cents, "payment": shown(&entry) }).to_string(),
            ),
            // A commit whose answer was lost may have happened.
            Err(LedgerError::Store(error @ StoreError::Unavailable(_))) => {
                CallEnd::Unknown(error.to_string())
            }
            Err(error) => CallEnd::Failed(error.to_string()),
        }
    }
}

fn shown(entry: &LedgerEntry) -> Value {
    json!({
        "payment": entry.id, "customer": entry.customer,
        "amount_cents": entry.amount_cents, "refunded_cents": entry.refunded_cents,
    })
}
