//! Connections: accepting them, no more than so many, and letting them end.

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::middleware::map_response;
use axum::response::Response;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;

use crate::linger::Linger;

/// What a connection may have in the program, and in the kernel in each direction, where Linux takes twice
/// that. Bodies are read in pieces of this size, and what a client sends before it is refused stays small.
const READ_BUFFER_BYTES: usize = 64 << 10;
const SOCKET_BUFFER_BYTES: u32 = 64 << 10;
const BACKLOG: u32 = 1024;
/// When the process has run out of descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// For those whose connection has nothing to answer when the server is told to stop: a request may be on
/// its way.
const LAST_CALL: Duration = Duration::from_secs(1);

pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The connections of one service.
pub(crate) struct Connections {
    http: http1::Builder,
    service: TowerToHyperService<Router>,
    receive_within: Duration,
    most: u32,
    free: Arc<Semaphore>,
    is_stopping: watch::Sender<bool>,
}

impl Connections {
    pub(crate) fn new(service: Router, most: u32, receive_within: Duration) -> Connections {
        let is_stopping = watch::Sender::new(false);
        let stopping = is_stopping.subscribe();
        let service = service.layer(map_response(move |mut answer: Response| {
            if *stopping.borrow() {
                let headers = answer.headers_mut();
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            ready(answer)
        }));
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new());
        http.header_read_timeout(receive_within);
        http.max_buf_size(READ_BUFFER_BYTES);
        Connections {
            http,
            service: TowerToHyperService::new(service),
            receive_within,
            most,
            free: Arc::new(Semaphore::new(most as usize)),
            is_stopping,
        }
    }

    /// Accepts connections, for ever.
    pub(crate) async fn accept(&self, listener: &TcpListener) {
        loop {
            let permit = self.permit().await;
            match listener.accept().await {
                Ok((stream, _)) => self.begin(stream, permit),
                Err(why) if is_of_one_connection(&why) => {}
                Err(why) => {
                    eprintln!("accept: {why}");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn begin(&self, stream: TcpStream, permit: OwnedSemaphorePermit) {
        drop(stream.set_nodelay(true));
        let (http, service) = (self.http.clone(), self.service.clone());
        let (receive_within, mut stopping) = (self.receive_within, self.is_stopping.subscribe());
        tokio::spawn(async move {
            if has_asked(&stream, receive_within, &mut stopping).await {
                serve(&http, Linger::new(stream, receive_within), service, &mut stopping).await;
            }
            drop(permit);
        });
    }

    /// Takes what has connected so far, which the kernel has told its clients, and nothing after it;
    /// waits until everything is answered.
    pub(crate) async fn end(self, listener: TcpListener) -> io::Result<()> {
        let listener = listener.into_std()?;
        self.is_stopping.send_replace(true);
        loop {
            let permit = self.permit().await;
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    self.begin(TcpStream::from_std(stream)?, permit);
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => break,
                Err(why) if is_of_one_connection(&why) => {}
                Err(_) => sleep(PAUSE).await,
            }
        }
        drop(listener);
        // All of them.
        drop(self.free.acquire_many(self.most).await);
        Ok(())
    }

    async fn permit(&self) -> OwnedSemaphorePermit {
        let permit = Arc::clone(&self.free).acquire_owned().await;
        permit.expect("the semaphore is never closed")
    }
}

/// Waits for the first bytes. Only then is the connection hyper's, which closes one without any when
/// it is told to stop, although its request may be on its way.
async fn has_asked(
    stream: &TcpStream,
    within: Duration,
    stopping: &mut watch::Receiver<bool>,
) -> bool {
    // `readable` may say so when there is nothing.
    let mut byte = [0];
    tokio::select! {
        peeked = stream.peek(&mut byte) => peeked.is_ok_and(|bytes| bytes > 0),
        () = sleep(within) => false,
        () = last_call(stopping) => false,
    }
}

async fn serve(
    http: &http1::Builder,
    stream: Linger,
    service: TowerToHyperService<Router>,
    stopping: &mut watch::Receiver<bool>,
) {
    let io = TokioIo::new(stream);
    let mut connection = pin!(http.serve_connection(io, service));
    // That a client has gone is no matter of the server's.
    tokio::select! {
        // The connection first: what has come is read before it is told to stop.
        biased;
        ended = &mut connection => drop(ended),
        () = last_call(stopping) => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

async fn last_call(stopping: &mut watch::Receiver<bool>) {
    // An error: the sender has gone, and with it the server.
    drop(stopping.wait_for(|is_stopping| *is_stopping).await);
    sleep(LAST_CALL).await;
}

fn is_of_one_connection(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
