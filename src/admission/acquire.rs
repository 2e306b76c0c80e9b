//! Permits that are acquired directly, by callers who are no jobs.

use super::Admission;
use crate::accounts::Terms;
use crate::answer::Request;

impl<J, W> Admission<J, W> {
    /// Asks for bytes behind everybody who asked before.
    pub(crate) fn request(&mut self, bytes: u64) -> Request {
        let admissible_bytes = self.largest_request_bytes();
        if bytes > admissible_bytes {
            return Request::NeverFits { admissible_bytes };
        }
        let seq = self.take_seq();
        self.permits.enter(seq, bytes, &mut self.accounts);
        self.settle();
        if self.permits.is_last(seq) { Request::Waiting { seq } } else { Request::Granted { seq } }
    }

    /// The most that can ever be acquired.
    pub(crate) fn largest_request_bytes(&self) -> u64 {
        self.largest_bytes()(&Terms::PLAIN)
    }

    /// Names who is to be told when the bytes are there.
    pub(crate) fn wait_for_bytes(&mut self, seq: u64, waiter: W) {
        self.permits.wait(seq, waiter);
    }

    /// Gives up a request. `false`: it was granted, or refused, after all.
    pub(crate) fn withdraw_request(&mut self, seq: u64) -> bool {
        let left = self.permits.leave(seq, &mut self.accounts);
        if left {
            self.settle();
        }
        left
    }
}
