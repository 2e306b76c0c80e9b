//! The heavy requests. Each has a place in a lane before its body is read.

use std::time::Duration;

use admit::axum::AdmitLayer;
use admit::tower::Rejected;
use admit::{Context, Cost, Lease, Place};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;

use crate::body::read;
use crate::failure::Failure;
use crate::lanes::Lanes;
use crate::options::Options;
use crate::work::gzip;
use crate::work::hash::Password;
use crate::work::picture::Header;

const MOST_JSON_BYTES: usize = 4 << 10;
const MOST_BODY_BYTES: usize = 32 << 20;

/// What a request is charged before anything of it is read: what its head says.
fn body_bytes(request: &Request) -> Cost {
    let length = axum::body::HttpBody::size_hint(request.body()).exact();
    Cost::new(0).input(length.unwrap_or(0))
}

pub(crate) fn routes(lanes: &Lanes, options: &Options) -> Router {
    let service = Service {
        lanes: lanes.clone(),
        receive_within: options.receive_within,
        start_within: options.start_within,
    };
    let behind = |lane| AdmitLayer::new(lane, body_bytes);
    Router::new()
        .route("/hash", post(hash).layer(behind(lanes.light.clone())))
        .route("/gzip", post(compress).layer(behind(lanes.gzip.clone())))
        .route("/thumbnail", post(thumbnail).layer(behind(lanes.thumbnail.clone())))
        .with_state(service)
}

#[derive(Clone, Debug)]
struct Service {
    lanes: Lanes,
    receive_within: Duration,
    start_within: Duration,
}

impl Service {
    async fn read(
        &self,
        place: &mut Place,
        body: Body,
        most_bytes: usize,
    ) -> Result<Vec<u8>, Failure> {
        let body = tokio::time::timeout(self.receive_within, read(place, body, most_bytes))
            .await
            .map_err(|_| Failure::Bad(StatusCode::REQUEST_TIMEOUT, String::from("too slow")))??;
        place.start_within(self.start_within);
        Ok(body)
    }
}

/// Which lane it belongs to is known when it has been read: until then, in the light one.
async fn hash(
    State(service): State<Service>,
    mut arriving: Place,
    body: Body,
) -> Result<String, Failure> {
    let json = service.read(&mut arriving, body, MOST_JSON_BYTES).await?;
    let password = Password::from_json(&json).map_err(Failure::bad_request)?;
    let cost = password.cost().map_err(|why| Failure::bad_request(why.to_string()))?;
    let lane = service.lanes.of_hash(password.log_n()).start_within(service.start_within);
    let place = lane.try_reserve(cost).map_err(|refused| Rejected::of(&lane, refused))?;
    drop((arriving, json));
    Ok(place.submit(move || password.hash())?.cancel_on_drop().await?)
}

async fn compress(
    State(service): State<Service>,
    mut place: Place,
    body: Body,
) -> Result<impl IntoResponse, Failure> {
    let input = service.read(&mut place, body, MOST_BODY_BYTES).await?;
    place.declare(gzip::cost(input.len() as u64))?;
    let job = place.submit(move || {
        let context = Context::current().expect("this is a job");
        let output = gzip::compress(input, || !context.is_cancelled())?;
        Some(lease(output))
    })?;
    let output = job.cancel_on_drop().await?.ok_or(admit::JoinError::Cancelled)?;
    Ok(([(header::CONTENT_TYPE, "application/gzip")], Bytes::from_owner(output)))
}

async fn thumbnail(
    State(service): State<Service>,
    mut place: Place,
    body: Body,
) -> Result<impl IntoResponse, Failure> {
    let file = service.read(&mut place, body, MOST_BODY_BYTES).await?;
    let header = Header::read(&file).map_err(Failure::bad_request)?;
    place.declare(header.cost(file.len() as u64))?;
    let job = place.submit(move || header.thumbnail(file).map(lease))?;
    let output = job.cancel_on_drop().await?.map_err(Failure::bad_request)?;
    Ok(([(header::CONTENT_TYPE, "image/png")], Bytes::from_owner(output)))
}

/// Keeps an answer's bytes in the budget until it has been sent.
fn lease(answer: Vec<u8>) -> Lease<Vec<u8>> {
    let context = Context::current().expect("this is a job");
    let permit = context.keep(answer.len() as u64).expect("the job was admitted with more");
    permit.with(answer)
}
