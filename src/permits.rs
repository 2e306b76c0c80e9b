//! Permits that are acquired directly, not through a job: those held, and those waited for.

use crate::line::Line;

#[derive(Debug)]
struct Acquirer<W> {
    bytes: u64,
    waiter: Option<W>,
}

#[derive(Debug)]
pub(crate) struct Permits<W> {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    line: Line<Acquirer<W>>,
}

impl<W> Permits<W> {
    pub(crate) fn new() -> Self {
        Permits { count: 0, bytes: 0, line: Line::new() }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.line.len()
    }

    /// The number and the bytes of the caller that has waited longest.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.line.front().map(|(seq, acquirer)| (seq, acquirer.bytes))
    }

    pub(crate) fn enter(&mut self, seq: u64, bytes: u64) {
        self.line.push(seq, Acquirer { bytes, waiter: None });
    }

    /// Whether the request that came last still waits, given that `seq` is its number.
    pub(crate) fn is_last(&self, seq: u64) -> bool {
        self.line.last_seq() == Some(seq)
    }

    pub(crate) fn wait(&mut self, seq: u64, waiter: W) {
        self.line.get_mut(seq).expect("it was just put there").waiter = Some(waiter);
    }

    pub(crate) fn leave(&mut self, seq: u64) -> bool {
        self.line.remove(seq).is_some()
    }

    /// The first in line has its permit. Gives back whom to tell.
    pub(crate) fn grant_first(&mut self) -> Option<W> {
        let (_, acquirer) = self.line.pop()?;
        self.count += 1;
        self.bytes += acquirer.bytes;
        acquirer.waiter
    }

    pub(crate) fn release(&mut self, bytes: u64, last: bool) {
        self.bytes -= bytes;
        self.count -= u64::from(last);
    }

    /// One permit became two; the bytes are the same.
    pub(crate) fn split(&mut self) {
        self.count += 1;
    }

    /// Takes out of the line everybody who waits for more than can ever be there.
    pub(crate) fn evict(&mut self, admissible_bytes: u64) -> impl Iterator<Item = W> {
        let gone = self.line.remove_where(|acquirer| acquirer.bytes > admissible_bytes);
        gone.into_iter().filter_map(|acquirer| acquirer.waiter)
    }
}
