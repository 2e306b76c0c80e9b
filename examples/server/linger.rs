//! Connections that are closed so that the last answer arrives.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// How long a client may go on sending after it was answered.
const LONGEST: Duration = Duration::from_secs(2);
const DISCARDED_AT_ONCE_BYTES: usize = 64 << 10;

/// A connection that, when it is shut down, discards what still comes until the client has closed
/// it too, or some time has passed.
///
/// A client whose upload is refused goes on sending until it has read the answer. Closing a socket
/// in which unread bytes arrive makes the kernel send a reset, which can destroy the answer before
/// the client reads it (RFC 9112, 9.6).
#[derive(Debug)]
pub(crate) struct Linger {
    stream: TcpStream,
    until: Option<Pin<Box<Sleep>>>,
}

impl Linger {
    pub(crate) fn new(stream: TcpStream) -> Linger {
        Linger { stream, until: None }
    }
}

impl AsyncRead for Linger {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Linger {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.until.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.until = Some(Box::pin(sleep(LONGEST)));
        }
        let mut discarded = [0; DISCARDED_AT_ONCE_BYTES];
        loop {
            let until = self.until.as_mut().expect("it was set");
            if until.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut discarded);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                // Closed, or broken: there is nobody to wait for.
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
    }
}
