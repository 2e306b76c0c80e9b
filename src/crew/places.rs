//! Places in lanes that are reserved for jobs still to come.

use super::Crew;
use crate::accounts::Accounts;
use crate::error::Limit;
use crate::queue::Entry;

impl<J, W> Crew<J, W> {
    /// Takes a place in the lane, if there is one that nobody waits for.
    pub(crate) fn reserve(&mut self, lane: usize, seq: u64, input_bytes: u64) -> Result<(), Limit> {
        // Whoever is behind the first outside is kept out by what keeps out the first.
        if let Some(limit) = self.limit_met_outside(lane) {
            return Err(limit);
        }
        match self.lanes[lane].limit_met_by(input_bytes) {
            Some(limit) => Err(limit),
            None => self.take_waiting_bytes(lane, seq, input_bytes),
        }?;
        self.lanes[lane].reserved_jobs += 1;
        Ok(())
    }

    /// The place is for a job with more input, or less.
    pub(crate) fn change_reserved(
        &mut self,
        lane: usize,
        seq: u64,
        before_bytes: u64,
        input_bytes: u64,
    ) -> Result<(), Limit> {
        let Some(more_bytes) = input_bytes.checked_sub(before_bytes) else {
            self.lanes[lane].inside_bytes -= before_bytes - input_bytes;
            self.waiting_bytes -= before_bytes - input_bytes;
            return Ok(());
        };
        if let Some(limit) = self.lanes[lane].bytes_met_by(more_bytes) {
            return Err(limit);
        }
        // It came before all that stand outside.
        self.take_waiting_bytes(lane, seq, more_bytes)
    }

    fn take_waiting_bytes(&mut self, lane: usize, seq: u64, input_bytes: u64) -> Result<(), Limit> {
        if !self.has_waiting_room(input_bytes, (seq, lane)) {
            return Err(self.waiting_limit_met_by(input_bytes));
        }
        self.lanes[lane].inside_bytes += input_bytes;
        self.waiting_bytes += input_bytes;
        Ok(())
    }

    pub(crate) fn give_up_reserved(&mut self, lane: usize, input_bytes: u64) {
        let queue = &mut self.lanes[lane];
        queue.reserved_jobs -= 1;
        queue.inside_bytes -= input_bytes;
        self.waiting_bytes -= input_bytes;
    }

    /// The job has come, and stands where its place was reserved: before all that came later.
    pub(crate) fn enter_reserved(
        &mut self,
        lane: usize,
        seq: u64,
        entry: Entry<J, W>,
        accounts: &mut Accounts,
    ) {
        self.give_up_reserved(lane, entry.input_bytes);
        self.note_expiry(entry.expires, lane, seq);
        self.lanes[lane].inherit_passes(seq);
        self.put_inside(lane, seq, entry);
        self.note_head(lane, accounts);
    }
}
