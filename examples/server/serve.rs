//! Connections: accepting them, no more than so many, and letting them end.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

use crate::linger::Linger;

/// What a connection may have in the program, and in the kernel on its way in. Bodies are read in
/// pieces of this size, and what a client sends before it is refused stays small.
const READ_BUFFER_BYTES: usize = 64 << 10;
const SOCKET_BUFFER_BYTES: u32 = 128 << 10;
const BACKLOG: u32 = 1024;
/// When the process has run out of descriptors.
const PAUSE: Duration = Duration::from_millis(50);
/// For those who have connected and asked nothing yet when the server is told to stop.
const LAST_CALL: Duration = Duration::from_secs(1);

pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The connections of one service.
pub(crate) struct Connections {
    http: http1::Builder,
    service: TowerToHyperService<Router>,
    receive_within: Duration,
    free: Arc<Semaphore>,
    /// Every open connection listens to it.
    is_stopping: watch::Sender<bool>,
}

impl Connections {
    pub(crate) fn new(service: Router, most: u32, receive_within: Duration) -> Connections {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new());
        http.header_read_timeout(receive_within);
        http.max_buf_size(READ_BUFFER_BYTES);
        Connections {
            http,
            service: TowerToHyperService::new(service),
            receive_within,
            free: Arc::new(Semaphore::new(most as usize)),
            is_stopping: watch::Sender::new(false),
        }
    }

    /// Accepts connections, for ever.
    pub(crate) async fn accept(&self, listener: &TcpListener) {
        loop {
            let permit = Arc::clone(&self.free).acquire_owned().await;
            let permit = permit.expect("the semaphore is never closed");
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

    fn begin(&self, stream: TcpStream, permit: impl Send + 'static) {
        drop(stream.set_nodelay(true));
        let (http, service) = (self.http.clone(), self.service.clone());
        let (receive_within, mut stopping) = (self.receive_within, self.is_stopping.subscribe());
        tokio::spawn(async move {
            if has_asked(&stream, receive_within, &mut stopping).await {
                serve(&http, stream, service, &mut stopping).await;
            }
            // The end waits until all are dropped.
            drop((permit, stopping));
        });
    }

    /// Takes what has connected so far, and nothing after it; waits until everything is answered.
    pub(crate) async fn end(self, listener: TcpListener) -> io::Result<()> {
        let listener = listener.into_std()?;
        // They were told by the kernel that they are connected.
        while let Ok((stream, _)) = listener.accept() {
            stream.set_nonblocking(true)?;
            self.begin(TcpStream::from_std(stream)?, ());
        }
        drop(listener);
        self.is_stopping.send_replace(true);
        self.is_stopping.closed().await;
        Ok(())
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
        () = async { stopped(stopping).await; sleep(LAST_CALL).await } => false,
    }
}

async fn serve(
    http: &http1::Builder,
    stream: TcpStream,
    service: TowerToHyperService<Router>,
    stopping: &mut watch::Receiver<bool>,
) {
    let io = TokioIo::new(Linger::new(stream));
    let mut connection = pin!(http.serve_connection(io, service));
    // That a client has gone is no matter of the server's.
    tokio::select! {
        // The connection first: what has come is read before it is told to stop.
        biased;
        ended = &mut connection => drop(ended),
        () = stopped(stopping) => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}

async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error: the sender has gone, and with it the server.
    drop(stopping.wait_for(|is_stopping| *is_stopping).await);
}

fn is_of_one_connection(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
