//! Reading what a client sends, no more than its place was charged for.

use admit::{Cost, Place};
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use http_body_util::BodyExt;

use crate::failure::Failure;

/// The first room for a body of unknown length.
const FIRST_BYTES: usize = 64 << 10;

/// Reads a body into memory that the place stands for.
///
/// With a length in its head, the layer has charged that. Otherwise more is charged before there is
/// room for it, and while a vector grows, it is both the old one and the new.
pub(crate) async fn read(
    place: &mut Place,
    mut body: Body,
    most_bytes: usize,
) -> Result<Vec<u8>, Failure> {
    let too_large =
        || Failure::Bad(StatusCode::PAYLOAD_TOO_LARGE, format!("at most {most_bytes} bytes"));
    let length = match axum::body::HttpBody::size_hint(&body).exact() {
        Some(length) => Some(usize::try_from(length).map_err(|_| too_large())?),
        None => None,
    };
    if length.is_some_and(|length| length > most_bytes) {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(length.unwrap_or(0));
    while let Some(chunk) = next_chunk(&mut body).await? {
        let needed = bytes.len() + chunk.len();
        if needed > most_bytes {
            return Err(too_large());
        }
        if needed > bytes.capacity() {
            let room = needed.max(2 * bytes.capacity()).max(FIRST_BYTES).min(most_bytes);
            charge(place, bytes.capacity() + room)?;
            bytes.reserve_exact(room - bytes.len());
            charge(place, room)?;
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn charge(place: &mut Place, bytes: usize) -> Result<(), Failure> {
    Ok(place.declare(Cost::new(place.cost().working_bytes()).input(bytes as u64))?)
}

async fn next_chunk(body: &mut Body) -> Result<Option<Bytes>, Failure> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|why| Failure::Bad(StatusCode::BAD_REQUEST, why.to_string()))?;
        if let Ok(chunk) = frame.into_data() {
            return Ok(Some(chunk));
        }
    }
    Ok(None)
}
