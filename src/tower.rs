//! Admission in front of a service: a [tower](https://docs.rs/tower) layer for HTTP requests.
//!
//! [`AdmitLayer`] takes a [`Place`] in a lane for each request, when the service is *called* and before its
//! body is read, and hands it on with the request. The service reads the body and submits its job in that
//! place. So a request that there is no room for is refused before it takes memory. Nothing is
//! reserved in `poll_ready`, where an idle connection would keep it.
//!
//! # Examples
//!
//! ```
//! use admit::tower::{AdmitError, AdmitLayer, Reserved};
//! use admit::{Budget, Cost, Executor, MIB};
//! use http::{Request, StatusCode};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # pollster::block_on(async {
//! let budget = Budget::new(64 * MIB, 0)?;
//! let executor = Executor::builder().workers(1).budget(budget).waiting_bytes(8 * MIB).build()?;
//! let lane = executor.default_lane().clone();
//! let cost = |request: &Request<Vec<u8>>| Cost::new(MIB).input(request.body().len() as u64);
//! let service = ServiceBuilder::new().layer(AdmitLayer::new(lane, cost)).service_fn(
//!     |request: Request<Vec<u8>>| async move {
//!         let place = Reserved::take(request.extensions()).expect("the layer put it there");
//!         let handle = place.submit(move || request.body().len())?;
//!         Ok::<_, Box<dyn std::error::Error>>(handle.cancel_on_drop().await?)
//!     },
//! );
//! assert_eq!(service.clone().oneshot(Request::new(vec![7; 1000])).await.unwrap(), 1000);
//! match service.oneshot(Request::new(vec![7; 9 << 20])).await {
//!     Err(AdmitError::Rejected(rejected)) => {
//!         assert_eq!(rejected.status(), StatusCode::PAYLOAD_TOO_LARGE);
//!     }
//!     other => panic!("{other:?}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Extensions, Request, StatusCode};
use pin_project_lite::pin_project;
use thiserror::Error;
use tower_layer::Layer;
use tower_service::Service;

use crate::cost::Cost;
use crate::error::{JoinError, Refused, SubmitError};
use crate::lane::Lane;
use crate::place::Place;
use crate::sync::Mutex;

/// Takes a place in a lane for each request: see the [module](self).
///
/// The cost is computed from the request's head, mostly from its `Content-Length`: that many bytes of
/// input, or none for a body of unknown length, for which more is
/// [declared](Place::declare) as it arrives. A cost that is computed from what the client sent may be
/// anything: what is above the budget or the lane's
/// [`most_job_bytes`](crate::LaneOptions::most_job_bytes) is refused.
#[derive(Clone, Debug)]
pub struct AdmitLayer<C> {
    lane: Lane,
    cost: C,
}

impl<C> AdmitLayer<C> {
    /// For a service whose jobs go to this lane.
    pub fn new(lane: Lane, cost: C) -> AdmitLayer<C> {
        AdmitLayer { lane, cost }
    }
}

impl<S, C: Clone> Layer<S> for AdmitLayer<C> {
    type Service = Admit<S, C>;

    fn layer(&self, inner: S) -> Admit<S, C> {
        Admit { inner, lane: self.lane.clone(), cost: self.cost.clone() }
    }
}

/// A service behind an [`AdmitLayer`].
#[derive(Clone, Debug)]
pub struct Admit<S, C> {
    inner: S,
    lane: Lane,
    cost: C,
}

impl<S, C, B> Service<Request<B>> for Admit<S, C>
where
    S: Service<Request<B>>,
    C: Fn(&Request<B>) -> Cost,
{
    type Response = S::Response;
    type Error = AdmitError<S::Error>;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(AdmitError::Service)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let kind = match self.lane.try_reserve((self.cost)(&request)) {
            Ok(place) => {
                let reserved = Reserved { place: Arc::new(Mutex::new(Some(place))) };
                request.extensions_mut().insert(reserved.clone());
                let holding = Holding(reserved);
                Kind::Reserved { future: self.inner.call(request), holding }
            }
            Err(reason) => Kind::Rejected { rejected: Some(Rejected::of(&self.lane, reason)) },
        };
        ResponseFuture { kind }
    }
}

/// The place of a request, in its extensions.
///
/// Whoever needs it takes it. If nobody does, it is given up when the service's future has ended or
/// is dropped, as when its client goes.
#[derive(Clone)]
pub struct Reserved {
    place: Arc<Mutex<Option<Place>>>,
}

impl Reserved {
    /// Takes the place. `None`: there is no layer, or it was taken.
    pub fn take(extensions: &Extensions) -> Option<Place> {
        extensions.get::<Reserved>()?.place.lock().take()
    }
}

/// A place that nobody can take any more once the service has ended, whoever has a copy of the request's
/// extensions.
#[derive(Debug)]
struct Holding(Reserved);

impl Holding {
    fn give_up(&self) {
        let place = self.0.place.lock().take();
        drop(place);
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl fmt::Debug for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`Admit`].
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        kind: Kind<F>,
    }
}

pin_project! {
    #[project = KindOf]
    #[derive(Debug)]
    enum Kind<F> {
        // It holds the place as long as the service works: an extension goes with the request,
        // which may be consumed at once.
        Reserved { #[pin] future: F, holding: Holding },
        Rejected { rejected: Option<Rejected> },
    }
}

impl<F, T, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<T, E>>,
{
    type Output = Result<T, AdmitError<E>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindOf::Reserved { future, holding } => {
                let output = ready!(future.poll(context));
                holding.give_up();
                Poll::Ready(output.map_err(AdmitError::Service))
            }
            KindOf::Rejected { rejected } => {
                let rejected = rejected.take().expect("not polled after its output");
                Poll::Ready(Err(AdmitError::Rejected(rejected)))
            }
        }
    }
}

/// Why there is no response of the service.
#[derive(Debug, Error)]
pub enum AdmitError<E> {
    /// The request was not admitted.
    #[error(transparent)]
    Rejected(Rejected),
    /// What the service itself failed with.
    #[error("service failed: {0}")]
    Service(E),
}

/// A request that was not admitted, or whose job did not come to a value.
#[derive(Debug, Error)]
#[error("{reason}")]
pub struct Rejected {
    /// Why.
    pub reason: Reason,
    /// How long a job that came now would [wait](Lane::predicted_wait), where it may come again.
    pub predicted_wait: Option<Duration>,
}

/// Why a request has no answer of its own.
#[derive(Debug, Error)]
pub enum Reason {
    /// Its job was not accepted.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Its job did not come to a value.
    #[error(transparent)]
    Job(#[from] JoinError),
}

impl Rejected {
    /// With what the lane predicts.
    pub fn of(lane: &Lane, reason: impl Into<Reason>) -> Rejected {
        let mut rejected = Rejected::without_lane(reason);
        if rejected.may_come_again() {
            rejected.predicted_wait = Some(lane.predicted_wait());
        }
        rejected
    }

    fn without_lane(reason: impl Into<Reason>) -> Rejected {
        Rejected { reason: reason.into(), predicted_wait: None }
    }

    /// Whether the same request may be admitted later.
    fn may_come_again(&self) -> bool {
        matches!(
            self.reason,
            Reason::Refused(Refused::Full(_) | Refused::Expired | Refused::Stalled { .. })
                | Reason::Job(JoinError::Expired | JoinError::Stalled { .. })
        )
    }

    /// The status that says it to a client: 413 if it never fits, 503 if it may come again or the
    /// executor is closed, and 500 if something is wrong here, such as a panic.
    pub fn status(&self) -> StatusCode {
        match &self.reason {
            Reason::Refused(Refused::NeverFits { .. } | Refused::InputAbove { .. })
            | Reason::Job(JoinError::NeverFits { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Reason::Refused(Refused::Closed)
            | Reason::Job(JoinError::Closed | JoinError::Cancelled) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ if self.may_come_again() => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// For `Retry-After`: the predicted wait in whole seconds, at least one, also where none is
    /// predicted. `None`: it is of no use to come again.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        let wait = self.predicted_wait.unwrap_or_default();
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
        self.may_come_again().then_some(seconds.max(1))
    }
}

/// For `?` in handlers. The closure is dropped.
impl<F> From<SubmitError<F>> for Rejected {
    fn from(error: SubmitError<F>) -> Rejected {
        Rejected::without_lane(error.reason)
    }
}

impl From<Refused> for Rejected {
    fn from(reason: Refused) -> Rejected {
        Rejected::without_lane(reason)
    }
}

impl From<JoinError> for Rejected {
    fn from(error: JoinError) -> Rejected {
        Rejected::without_lane(error)
    }
}
