//! Services behind an admission layer.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use admit::tower::{AdmitError, Reason, Rejected, Reserved};
use admit::{Cost, Executor, JoinError, Lane, LaneOptions, Place, Refused};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use pollster::block_on;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::kit::{Blocker, budget, builder};
use crate::watchdog::watch;

fn executor(capacity: usize) -> Executor {
    let budget = budget(110);
    builder(1, &budget).capacity(capacity).waiting_bytes(10).build().unwrap()
}

fn cost(request: &Request) -> Cost {
    let length = request.headers().get("content-length");
    let bytes = length.and_then(|length| length.to_str().ok()?.parse().ok());
    Cost::new(1).input(bytes.unwrap_or(u64::MAX))
}

fn with_length(length: &str) -> Request {
    Request::post("/").header("content-length", length).body(Body::empty()).unwrap()
}

fn reserved_places(executor: &Executor) -> usize {
    executor.stats().lanes.iter().map(|lane| lane.reserved_places).sum()
}

fn idle() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

#[test]
fn a_service_that_is_ready_holds_no_place_until_it_is_called() {
    let _watch = watch!();
    let executor = executor(1);
    let lane = executor.default_lane().clone();
    let inner = service_fn(|_: Request| pending::<Result<(), Infallible>>());
    let layer = admit::tower::AdmitLayer::new(lane, cost);
    let mut services: Vec<_> = (0..10).map(|_| layer.layer(inner)).collect();
    for service in &mut services {
        block_on(service.ready()).unwrap();
    }
    assert_eq!(reserved_places(&executor), 0);
    let called = services[0].call(with_length("3"));
    assert_eq!((reserved_places(&executor), executor.stats().waiting_input_bytes), (1, 3));
    drop(called);
    assert_eq!(reserved_places(&executor), 0);
}

#[test]
fn what_is_not_admitted_is_an_error_that_says_why_and_when_to_come_again() {
    let _watch = watch!();
    let executor = executor(1);
    let lane = executor.default_lane().clone();
    let inner = service_fn(|_: Request| ready(Err::<(), _>("broken")));
    let service = admit::tower::AdmitLayer::new(lane.clone(), cost).layer(inner);
    let rejected = |length| match block_on(service.clone().oneshot(with_length(length))) {
        Err(AdmitError::Rejected(rejected)) => rejected,
        other => panic!("{other:?}"),
    };
    let broken = block_on(service.clone().oneshot(with_length("10")));
    assert!(matches!(broken, Err(AdmitError::Service("broken"))));
    for hostile in ["11", "18446744073709551615", "-1", "1e9", ""] {
        let never = rejected(hostile);
        assert_eq!(
            (never.status(), never.retry_after_seconds()),
            (StatusCode::PAYLOAD_TOO_LARGE, None)
        );
    }
    let blocker = Blocker::on(&lane, 100);
    let _waits = Blocker::waiting_on(&lane, 100);
    let full = rejected("1");
    assert!(matches!(full.reason, Reason::Refused(Refused::Full(_))));
    assert_eq!(full.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(full.predicted_wait.is_some() && full.retry_after_seconds() >= Some(1));
    executor.close();
    let closed = rejected("1");
    let answer = (closed.status(), closed.retry_after_seconds());
    assert_eq!(answer, (StatusCode::SERVICE_UNAVAILABLE, None));
    blocker.let_go();
}

/// The handler consumes the request, extensions and all, before it has ended.
#[test]
fn a_place_that_nobody_takes_is_held_while_the_service_works() {
    let _watch = watch!();
    let executor = executor(1);
    let lane = executor.default_lane().clone();
    let (go, goes) = async_gate();
    let goes = Arc::new(goes);
    let inner = service_fn(move |request: Request| {
        drop(request);
        let goes = Arc::clone(&goes);
        async move {
            goes.acquire().await.unwrap().forget();
            Ok::<(), Infallible>(())
        }
    });
    let service = admit::tower::AdmitLayer::new(lane, cost).layer(inner);
    let mut future = pin!(service.oneshot(with_length("3")));
    assert!(future.as_mut().poll(&mut idle()).is_pending());
    assert_eq!(reserved_places(&executor), 1);
    go.add_permits(1);
    block_on(future).unwrap();
    assert_eq!(reserved_places(&executor), 0);
}

/// Neither a future that is kept after its output nor a copy of the extensions keeps the place.
#[test]
fn a_place_that_nobody_takes_is_given_up_when_the_service_has_ended() {
    let _watch = watch!();
    let executor = executor(1);
    let copies = Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = Arc::clone(&copies);
    let inner = service_fn(move |request: Request| {
        kept.lock().unwrap().push(request.extensions().clone());
        std::future::ready(Ok::<(), Infallible>(()))
    });
    let lane = executor.default_lane().clone();
    let mut service = admit::tower::AdmitLayer::new(lane, cost).layer(inner);
    let mut future = pin!(service.call(with_length("3")));
    assert!(future.as_mut().poll(&mut idle()).is_ready());
    assert_eq!(reserved_places(&executor), 0);
    drop(service.call(with_length("3")));
    assert_eq!(reserved_places(&executor), 0);
    assert_eq!(copies.lock().unwrap().len(), 2);
}

fn async_gate() -> (Arc<tokio::sync::Semaphore>, Arc<tokio::sync::Semaphore>) {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    (Arc::clone(&gate), gate)
}

#[test]
fn a_client_that_goes_takes_its_job_with_it_unless_that_runs() {
    let _watch = watch!();
    let executor = executor(2);
    let lane = executor.default_lane().clone();
    let inner = service_fn(|request: Request| async move {
        let place = Reserved::take(request.extensions()).expect("the layer put it there");
        assert!(Reserved::take(request.extensions()).is_none(), "there is one");
        place.submit(|| ())?.cancel_on_drop().await?;
        Ok::<_, Rejected>(())
    });
    let service = admit::tower::AdmitLayer::new(lane.clone(), cost).layer(inner);
    let blocker = Blocker::on(&lane, 100);
    {
        let mut future = pin!(service.oneshot(with_length("3")));
        assert!(future.as_mut().poll(&mut idle()).is_pending());
        assert_eq!((reserved_places(&executor), executor.stats().waiting_jobs), (0, 1));
    }
    assert_eq!((executor.stats().waiting_jobs, executor.stats().counts.cancelled), (0, 1));
    blocker.release();
}

/// What the handler's job does is in the header `do`.
async fn handler(place: Place, request: Request) -> Result<String, Rejected> {
    let what = request.headers().get("do").map(|what| what.to_str().unwrap().to_owned());
    let job = place.submit(move || match what.as_deref() {
        Some("panic") => panic!("a secret"),
        _ => String::from("done"),
    })?;
    Ok(job.cancel_on_drop().await?)
}

fn app(lane: &Lane, when_full: Option<StatusCode>) -> Router {
    let mut layer = admit::axum::AdmitLayer::new(lane.clone(), cost);
    if let Some(status) = when_full {
        layer = layer.when_full(status);
    }
    Router::new().route("/", post(handler).layer(layer)).route("/bare", post(handler))
}

fn answer(app: &Router, request: Request) -> (StatusCode, Option<u64>, String) {
    block_on(async {
        let response: Response = app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let after = response.headers().get("retry-after").map(|it| it.to_str().unwrap().to_owned());
        let body = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        (status, after.map(|after| after.parse().unwrap()), text)
    })
}

#[test]
fn full_late_never_closed_and_broken_are_different_answers() {
    let _watch = watch!();
    let executor = executor(1);
    let lane = executor.default_lane().clone();
    let plain = app(&lane, None);
    let done = (StatusCode::OK, None, String::from("done"));
    assert_eq!(answer(&plain, with_length("3")), done);

    let (status, after, text) = answer(&plain, with_length("11"));
    assert_eq!((status, after), (StatusCode::PAYLOAD_TOO_LARGE, None));
    assert_eq!(
        text,
        "input never has a place: it is 11 bytes, and at most 10 bytes may wait in the lane\n"
    );

    let mut panics = with_length("3");
    panics.headers_mut().insert("do", "panic".parse().unwrap());
    let broken = (StatusCode::INTERNAL_SERVER_ERROR, None, String::from("internal error\n"));
    assert_eq!(answer(&plain, panics), broken);

    let bare = Request::post("/bare").body(Body::empty()).unwrap();
    assert_eq!(answer(&plain, bare).0, StatusCode::INTERNAL_SERVER_ERROR);

    let blocker = Blocker::on(&lane, 100);
    let late = app(&lane.start_within(Duration::from_millis(10)), None);
    let (status, after, text) = answer(&late, with_length("3"));
    assert_eq!((status, after.is_some()), (StatusCode::SERVICE_UNAVAILABLE, true));
    assert_eq!(text, format!("{}\n", JoinError::Expired));

    let waits = Blocker::waiting_on(&lane, 100);
    let (status, after, text) = answer(&plain, with_length("3"));
    assert_eq!((status, after.is_some()), (StatusCode::SERVICE_UNAVAILABLE, true));
    assert!(text.starts_with("lane is full: "), "{text}");
    let (status, after, _) =
        answer(&app(&lane, Some(StatusCode::TOO_MANY_REQUESTS)), with_length("3"));
    assert_eq!((status, after.is_some()), (StatusCode::TOO_MANY_REQUESTS, true));
    blocker.release();
    waits.release();

    executor.close();
    let closed = (StatusCode::SERVICE_UNAVAILABLE, None, String::from("executor is closed\n"));
    assert_eq!(answer(&plain, with_length("3")), closed);
}

#[test]
fn lanes_of_different_routes_shed_apart() {
    let _watch = watch!();
    let executor = executor(1);
    let other = executor.add_lane(LaneOptions::new("other").capacity(1)).unwrap();
    let (one, two) = (app(executor.default_lane(), None), app(&other, None));
    let blocker = Blocker::on(executor.default_lane(), 100);
    let waits = Blocker::waiting_on(executor.default_lane(), 100);
    assert_eq!(answer(&one, with_length("3")).0, StatusCode::SERVICE_UNAVAILABLE);
    let mut admitted = pin!(two.oneshot(with_length("3")));
    assert!(admitted.as_mut().poll(&mut idle()).is_pending());
    blocker.release();
    waits.release();
    assert_eq!(block_on(admitted).unwrap().status(), StatusCode::OK);
}
