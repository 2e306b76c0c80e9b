//! Being told to stop.

use std::io;

/// Waits for SIGTERM or SIGINT; on other systems than Unix, for ^C.
pub(crate) struct Stop {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Stop {
    /// From here on the signals do not kill the process.
    #[cfg(unix)]
    pub(crate) fn listen() -> io::Result<Stop> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Stop { signals: [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?] })
    }

    #[cfg(unix)]
    pub(crate) async fn told(mut self) {
        let [terminate, interrupt] = &mut self.signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> io::Result<Stop> {
        Ok(Stop {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn told(self) {
        drop(tokio::signal::ctrl_c().await);
    }
}
