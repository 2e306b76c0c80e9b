//! What tells how the service is: for machines, for Prometheus, and for people.

use std::sync::Arc;

use admit::Executor;
use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;

use crate::health::Health;
use crate::history::History;
use crate::lanes::Lanes;
use crate::metrics::{self, Scraped};
use crate::plots::Plot;

pub(crate) fn routes(executor: &Arc<Executor>, lanes: &Lanes, history: &History) -> Router {
    let health = Health::new(executor, &lanes.light, history);
    let scraped = Scraped::new(executor);
    let history = history.clone();
    Router::new()
        .route("/", get(|| async { Html(include_str!("page.html")) }))
        .route("/healthz", get(move || async move { health.check() }))
        .route("/metrics", get(move || async move { text(metrics::CONTENT_TYPE, scraped.text()) }))
        .route("/plots/{name}", get(move |Path(name)| async move { plot(&history, name) }))
}

fn plot(history: &History, name: String) -> Response {
    match Plot::named(&name) {
        Some(plot) => text("image/svg+xml", plot.svg(&history.samples())),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn text<E: std::fmt::Display>(kind: &'static str, text: Result<String, E>) -> Response {
    match text {
        Ok(text) => ([(header::CONTENT_TYPE, kind)], text).into_response(),
        Err(why) => {
            eprintln!("{kind}: {why}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
