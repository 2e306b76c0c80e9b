//! One client: a connection, a request, and what comes of it.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::bodies::Bodies;
use crate::load::{Arrival, Wish};

/// What a slow reader takes of an answer before it has read it.
const SLOW_READER_BUFFER_BYTES: u32 = 64 << 10;
const PIECES: u32 = 40;
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// `is_right`: a result, and the one that it should be.
    Answered { status: u16, is_right: bool },
    /// The client went before it had its answer, or all of it.
    Gone { has_head: bool },
    /// The connection broke without an answer.
    Lost(String),
    /// There was no connection.
    Unconnected,
}

#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) arrival: Arrival,
    /// From when it should have come: a client that is late makes nobody look faster.
    pub(crate) took: Duration,
    pub(crate) outcome: Outcome,
}

type Failure = Box<dyn Error + Send + Sync>;

pub(crate) async fn visit(
    server: SocketAddr,
    bodies: Arc<Bodies>,
    arrival: Arrival,
    begin: Instant,
) -> Record {
    let came = begin + arrival.at;
    let has_head = AtomicBool::new(false);
    let exchange = async {
        let stream = match connect(server, &arrival).await {
            Ok(stream) => stream,
            Err(_) => return Outcome::Unconnected,
        };
        match exchange(stream, &bodies, &arrival, &has_head).await {
            Ok((status, answer)) => {
                let is_right = status == 200
                    && match arrival.wish {
                        Wish::Honest { kind, body } => {
                            bodies.of(kind, body).is_answered_by(&answer)
                        }
                        Wish::Hostile(_) => false,
                    };
                Outcome::Answered { status, is_right }
            }
            Err(why) => Outcome::Lost(chain(&*why)),
        }
    };
    let outcome = timeout_at(came + arrival.patience, exchange).await;
    let gone = |_| Outcome::Gone { has_head: has_head.load(Ordering::Relaxed) };
    let outcome = outcome.unwrap_or_else(gone);
    Record { arrival, took: came.elapsed(), outcome }
}

async fn connect(server: SocketAddr, arrival: &Arrival) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    if arrival.reads_bytes_per_second.is_some() {
        socket.set_recv_buffer_size(SLOW_READER_BUFFER_BYTES)?;
    }
    socket.connect(server).await
}

/// Everything that is spawned here ends with the exchange, and with it the connection.
async fn exchange(
    stream: TcpStream,
    bodies: &Bodies,
    arrival: &Arrival,
    has_head: &AtomicBool,
) -> Result<(u16, Vec<u8>), Failure> {
    let mut tasks = JoinSet::new();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tasks.spawn(async move { drop(connection.await) });
    let (path, body) = bodies.sent(arrival.wish);
    let mut request = Request::post(path).header(header::HOST, "localhost");
    let body = match (body, arrival.sends_over) {
        (Some(body), None) => Full::new(body).boxed(),
        (Some(body), Some(over)) => {
            request = request.header(header::CONTENT_LENGTH, body.len());
            streamed(&mut tasks, |sender| slowly(body, over, sender))
        }
        (None, _) => streamed(&mut tasks, endlessly),
    };
    let response = sender.send_request(request.body(body)?).await?;
    has_head.store(true, Ordering::Relaxed);
    let status = response.status().as_u16();
    Ok((status, read(response, arrival.reads_bytes_per_second).await?))
}

type Pieces = Sender<Bytes, Infallible>;

fn streamed<F>(
    tasks: &mut JoinSet<()>,
    feed: impl FnOnce(Pieces) -> F,
) -> BoxBody<Bytes, Infallible>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, body) = Channel::new(1);
    tasks.spawn(feed(sender));
    body.boxed()
}

async fn slowly(body: Bytes, over: Duration, mut sender: Pieces) {
    let piece_bytes = body.len().div_ceil(PIECES as usize);
    let mut rest = body;
    while !rest.is_empty() {
        let piece = rest.split_to(piece_bytes.min(rest.len()));
        if sender.send_data(piece).await.is_err() {
            return;
        }
        sleep(over / PIECES).await;
    }
}

async fn endlessly(mut sender: Pieces) {
    while sender.send_data(Bytes::from_static(&[b'x'; CHUNK_BYTES])).await.is_ok() {}
}

async fn read(
    response: Response<Incoming>,
    bytes_per_second: Option<u32>,
) -> Result<Vec<u8>, Failure> {
    let mut body = response.into_body();
    let mut answer = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            answer.extend_from_slice(&data);
            if let Some(pace) = bytes_per_second {
                sleep(Duration::from_secs_f64(data.len() as f64 / f64::from(pace))).await;
            }
        }
    }
    Ok(answer)
}

fn chain(why: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(why), |why: &&(dyn Error + 'static)| (*why).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
