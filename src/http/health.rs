//! `/livez`, `/readyz` and `/metrics`: for the machine that runs the process, without authentication, and with
//! nothing in them that is secret.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::sync::watch;

use crate::store::SharedStore;

/// What the answers are made from.
#[derive(Clone)]
pub struct Health {
    /// Asked whether it answers; none before it has been reached.
    pub store: Arc<watch::Sender<Option<SharedStore>>>,
    /// Why the broker cannot be worked with, if it cannot.
    pub broker: watch::Receiver<Option<String>>,
    /// The metrics.
    pub metrics: PrometheusHandle,
}

pub(super) fn routes(health: Health) -> Router {
    Router::new()
        .route("/livez", get(async || "alive\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health)
}

/// 200 while the database answers and the broker can be worked with; else 503 and why.
async fn ready(State(health): State<Health>) -> impl IntoResponse {
    let store = health.store.borrow().clone();
    let database = match store {
        None => Err("the database has not been reached yet".to_owned()),
        Some(store) => match tokio::time::timeout(std::time::Duration::from_secs(2), store.ping()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the database did not answer within 2 s".to_owned()),
        },
    };
    let broker = match health.broker.borrow().clone() {
        None => Ok(()),
        Some(why) => Err(format!("the broker: {why}")),
    };
    match database.and(broker) {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
    }
}

async fn metrics(State(health): State<Health>) -> impl IntoResponse {
    (
        [("content-type", "text/plain; version=0.0.4")],
        health.metrics.render(),
    )
}
