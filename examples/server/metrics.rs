//! `/metrics`, for Prometheus.

use std::fmt;
use std::sync::Arc;

use admit::Executor;
use admit::prometheus::Metrics;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// What Prometheus asks for, by content negotiation or without.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug)]
pub(crate) struct Scraped {
    registry: Arc<Registry>,
}

impl Scraped {
    pub(crate) fn new(executor: &Arc<Executor>) -> Scraped {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Metrics::new(executor)));
        Scraped { registry: Arc::new(registry) }
    }

    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
