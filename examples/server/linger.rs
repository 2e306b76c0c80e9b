//! Connections whose clients are slow: in reading, and in reading the last answer.

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
/// A client that takes less of its answer in its time is gone, or means harm: the answer is memory, and
/// the connection one of few.
const LEAST_BYTES: usize = 64 << 10;

/// A connection that breaks when the client takes too little of its answer, and that, when it is shut down,
/// discards what still comes until the client has closed it too, or some time has passed.
///
/// A client whose upload is refused goes on sending until it has read the answer. Closing a socket
/// in which unread bytes arrive makes the kernel send a reset, which can destroy the answer before
/// the client reads it (RFC 9112, 9.6).
#[derive(Debug)]
pub(crate) struct Linger {
    stream: TcpStream,
    until: Option<Pin<Box<Sleep>>>,
    /// For a client to take some of its answer.
    take_within: Duration,
    /// While the client does not take what there is.
    stalled: Option<Stalled>,
}

#[derive(Debug)]
struct Stalled {
    written_bytes: usize,
    until: Pin<Box<Sleep>>,
}

impl Linger {
    pub(crate) fn new(stream: TcpStream, take_within: Duration) -> Linger {
        Linger { stream, until: None, take_within, stalled: None }
    }

    fn wrote(
        &mut self,
        context: &mut Context<'_>,
        wrote: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let take_within = self.take_within;
        let stalled = || Stalled { written_bytes: 0, until: Box::pin(sleep(take_within)) };
        match &wrote {
            Poll::Pending => {
                let stalled = self.stalled.get_or_insert_with(stalled);
                ready!(stalled.until.as_mut().poll(context));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Ready(Ok(bytes)) => {
                self.stalled = self.stalled.take().and_then(|mut stalled| {
                    stalled.written_bytes += bytes;
                    (stalled.written_bytes < LEAST_BYTES).then_some(stalled)
                });
                wrote
            }
            Poll::Ready(Err(_)) => wrote,
        }
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
        let wrote = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wrote(context, wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.wrote(context, wrote)
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
