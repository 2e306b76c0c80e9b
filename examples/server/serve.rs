//! Connections: accepting them, no more than so many, and letting them end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;

use crate::linger::Linger;

/// What a connection may have in the program, and in the kernel on its way in. Bodies are read in
/// pieces of this size, and what a client sends before it is refused stays small.
const READ_BUFFER_BYTES: usize = 16 << 10;
const SOCKET_BUFFER_BYTES: u32 = 128 << 10;
const BACKLOG: u32 = 1024;
/// When the process has run out of descriptors.
const PAUSE: Duration = Duration::from_millis(50);

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
    free: Arc<Semaphore>,
    open: GracefulShutdown,
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
            free: Arc::new(Semaphore::new(most as usize)),
            open: GracefulShutdown::new(),
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
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn begin(&self, stream: TcpStream, permit: impl Send + 'static) {
        drop(stream.set_nodelay(true));
        let io = TokioIo::new(Linger::new(stream));
        let connection = self.http.serve_connection(io, self.service.clone());
        let connection = self.open.watch(connection);
        tokio::spawn(async move {
            // A client that has gone is no matter of the server's.
            drop(connection.await);
            drop(permit);
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
        self.open.shutdown().await;
        Ok(())
    }
}

fn is_of_one_connection(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
