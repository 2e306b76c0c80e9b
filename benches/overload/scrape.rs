//! What the service says of itself.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::load::Kind;

type Failure = Box<dyn std::error::Error>;

/// Jobs that have run, by kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    pub(crate) jobs: [u64; 5],
}

/// `None`: the service has no metrics.
pub(crate) async fn completed(server: SocketAddr) -> Result<Option<Completed>, Failure> {
    let Some(text) = get(server, "/metrics").await? else { return Ok(None) };
    let mut jobs = [0; 5];
    for kind in Kind::ALL {
        let name = format!("admit_jobs_total{{lane=\"{}\",ended=\"completed\"}} ", kind.lane());
        let value = text.lines().find_map(|line| line.strip_prefix(&name));
        jobs[kind as usize] = value.ok_or_else(|| format!("no {name}"))?.parse()?;
    }
    Ok(Some(Completed { jobs }))
}

async fn get(server: SocketAddr, path: &str) -> Result<Option<String>, Failure> {
    let stream = TcpStream::connect(server).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let request = Request::get(path).header(header::HOST, "localhost");
    let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    let status = response.status();
    let text = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok((status == StatusCode::OK).then(|| String::from_utf8_lossy(&text).into_owned()))
}
