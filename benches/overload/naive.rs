//! The same service as it is written without admission.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Router, serve};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::work::gzip;
use crate::work::hash::Password;
use crate::work::picture::Header;

type Failure = Box<dyn std::error::Error>;
type Bad = (StatusCode, String);

const MIB: u64 = 1 << 20;

/// What limits the jobs that run at once.
#[derive(Clone, Debug)]
struct Gate {
    /// A permit for each MiB.
    memory: Option<(Arc<Semaphore>, u32)>,
}

impl Gate {
    async fn run<T: Send + 'static>(
        &self,
        bytes: u64,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Bad> {
        let permit = match &self.memory {
            Some((memory, all)) => {
                let mib = u32::try_from(bytes.div_ceil(MIB)).unwrap_or(u32::MAX);
                if mib > *all {
                    return Err((StatusCode::PAYLOAD_TOO_LARGE, String::from("too large")));
                }
                let permit = Arc::clone(memory).acquire_many_owned(mib).await;
                Some(permit.map_err(internal)?)
            }
            None => None,
        };
        let job = move || {
            let value = job();
            drop(permit);
            value
        };
        spawn_blocking(job).await.map_err(internal)
    }
}

fn internal(why: impl std::error::Error) -> Bad {
    (StatusCode::INTERNAL_SERVER_ERROR, why.to_string())
}

fn bad(why: impl ToString) -> Bad {
    (StatusCode::BAD_REQUEST, why.to_string())
}

async fn hash(gate: Gate, body: Bytes) -> Result<String, Bad> {
    let password = Password::from_json(&body).map_err(bad)?;
    let cost = password.cost().map_err(bad)?;
    gate.run(cost.working_bytes(), move || password.hash()).await
}

async fn compress(gate: Gate, body: Bytes) -> Result<Vec<u8>, Bad> {
    let cost = gzip::cost(body.len() as u64);
    let bytes = cost.total_bytes().ok_or_else(|| bad("too large"))?;
    let output = gate.run(bytes, move || gzip::compress(body, || true)).await?;
    output.ok_or_else(|| bad("nobody wants it"))
}

async fn thumbnail(gate: Gate, body: Bytes) -> Result<Vec<u8>, Bad> {
    let header = Header::read(&body).map_err(bad)?;
    let cost = header.cost(body.len() as u64);
    let bytes = cost.total_bytes().ok_or_else(|| bad("too large"))?;
    gate.run(bytes, move || header.thumbnail(body.into())).await?.map_err(bad)
}

/// Serves for ever; with `admissible_mib`, behind a semaphore of that many permits.
pub(crate) fn run(admissible_mib: Option<u32>) -> Result<(), Failure> {
    let gate =
        Gate { memory: admissible_mib.map(|mib| (Arc::new(Semaphore::new(mib as usize)), mib)) };
    let with = |gate: &Gate| gate.clone();
    let (hashing, zipping, shrinking) = (with(&gate), with(&gate), with(&gate));
    let service = Router::new()
        .route("/hash", post(move |body| hash(hashing.clone(), body)))
        .route("/gzip", post(move |body| compress(zipping.clone(), body)))
        .route("/thumbnail", post(move |body| thumbnail(shrinking.clone(), body)))
        .route("/healthz", get(|| async { "ok" }))
        .layer(DefaultBodyLimit::max(32 << 20));
    tokio::runtime::Runtime::new()?.block_on(async {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
        println!("listening on http://{}", listener.local_addr()?);
        serve(listener, service).await?;
        Ok(())
    })
}
