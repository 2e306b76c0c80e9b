//! Admission in front of [axum](https://docs.rs/axum) handlers: the [tower layer](crate::tower) with answers
//! instead of errors, and a [`Place`] as an argument of a handler.
//!
//! # Examples
//!
//! ```
//! use admit::axum::AdmitLayer;
//! use admit::tower::Rejected;
//! use admit::{Budget, Cost, Executor, MIB, Place};
//! use axum::body::{Body, Bytes};
//! use axum::extract::Request;
//! use axum::routing::post;
//! use axum::{Router, http::StatusCode};
//! use tower::ServiceExt;
//!
//! async fn count(place: Place, body: Bytes) -> Result<String, Rejected> {
//!     let job = place.submit(move || body.iter().filter(|byte| **byte == b'a').count())?;
//!     Ok(job.cancel_on_drop().await?.to_string())
//! }
//!
//! # pollster::block_on(async {
//! let budget = Budget::new(64 * MIB, 0)?;
//! let executor = Executor::builder().workers(1).budget(budget).waiting_bytes(8 * MIB).build()?;
//! let cost = |request: &Request| {
//!     let length = request.headers().get("content-length");
//!     let bytes = length.and_then(|length| length.to_str().ok()?.parse().ok());
//!     Cost::new(MIB).input(bytes.unwrap_or(u64::MAX))
//! };
//! let layer = AdmitLayer::new(executor.default_lane().clone(), cost);
//! let app: Router = Router::new().route("/count", post(count).layer(layer));
//!
//! let request = |length: &str| {
//!     Request::post("/count").header("content-length", length).body(Body::from("banana")).unwrap()
//! };
//! let answer = app.clone().oneshot(request("6")).await?;
//! assert_eq!(answer.status(), StatusCode::OK);
//! let answer = app.oneshot(request("16777216")).await?;
//! assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum_core::extract::FromRequestParts;
use axum_core::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, Request, StatusCode, header};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::cost::Cost;
use crate::error::Refused;
use crate::lane::Lane;
use crate::place::Place;
use crate::tower::{self, Admit, AdmitError, Reason, Rejected, Reserved};

/// Takes a place in a lane for each request, and answers those for which there is none: see the
/// [module](self), and [`Rejected::status`] for the answers.
#[derive(Clone, Debug)]
pub struct AdmitLayer<C> {
    layer: tower::AdmitLayer<C>,
    when_full: StatusCode,
}

impl<C> AdmitLayer<C> {
    /// For handlers whose jobs go to this lane.
    pub fn new(lane: Lane, cost: C) -> AdmitLayer<C> {
        let layer = tower::AdmitLayer::new(lane, cost);
        AdmitLayer { layer, when_full: StatusCode::SERVICE_UNAVAILABLE }
    }

    /// What to answer when the lane is full, instead of 503: 429, Too Many Requests, says that it is the
    /// client who sends too much, as where each has a lane.
    pub fn when_full(mut self, status: StatusCode) -> AdmitLayer<C> {
        self.when_full = status;
        self
    }
}

impl<S, C: Clone> Layer<S> for AdmitLayer<C> {
    type Service = Respond<S, C>;

    fn layer(&self, inner: S) -> Respond<S, C> {
        Respond { inner: self.layer.layer(inner), when_full: self.when_full }
    }
}

/// A service behind an [`AdmitLayer`].
#[derive(Clone, Debug)]
pub struct Respond<S, C> {
    inner: Admit<S, C>,
    when_full: StatusCode,
}

impl<S, C, B> Service<Request<B>> for Respond<S, C>
where
    S: Service<Request<B>>,
    S::Response: IntoResponse,
    C: Fn(&Request<B>) -> Cost,
{
    type Response = Response;
    type Error = S::Error;
    type Future = RespondFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let is_ready = ready!(self.inner.poll_ready(context));
        Poll::Ready(is_ready.or_else(|error| match error {
            AdmitError::Service(error) => Err(error),
            // It is admitted in the call.
            AdmitError::Rejected(_) => Ok(()),
        }))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        RespondFuture { future: self.inner.call(request), when_full: self.when_full }
    }
}

pin_project! {
    /// The future of [`Respond`].
    #[derive(Debug)]
    pub struct RespondFuture<F> {
        #[pin]
        future: tower::ResponseFuture<F>,
        when_full: StatusCode,
    }
}

impl<F, T, E> Future for RespondFuture<F>
where
    F: Future<Output = Result<T, E>>,
    T: IntoResponse,
{
    type Output = Result<Response, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.future.poll(context)) {
            Ok(response) => Ok(response.into_response()),
            Err(AdmitError::Service(error)) => Err(error),
            Err(AdmitError::Rejected(rejected)) => {
                let is_full = matches!(rejected.reason, Reason::Refused(Refused::Full(_)));
                let mut response = rejected.into_response();
                if is_full {
                    *response.status_mut() = *this.when_full;
                }
                Ok(response)
            }
        })
    }
}

/// With `Retry-After` where coming again is of use. What is wrong here is not told to clients.
impl IntoResponse for Rejected {
    fn into_response(self) -> Response {
        let status = self.status();
        let text = match status {
            StatusCode::INTERNAL_SERVER_ERROR => String::from("internal error\n"),
            _ => format!("{self}\n"),
        };
        let mut response = (status, text).into_response();
        if let Some(seconds) = self.retry_after_seconds() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The place that an [`AdmitLayer`] took for the request. Without a layer, or when it has been taken,
/// the answer is 500.
impl<S: Sync> FromRequestParts<S> for Place {
    type Rejection = (StatusCode, &'static str);

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Place, Self::Rejection> {
        let place = Reserved::take(&parts.extensions);
        place.ok_or((StatusCode::INTERNAL_SERVER_ERROR, "no place was taken for this request\n"))
    }
}
