//! The rule: who goes next.

use super::Admission;
use crate::accounts::{AccountId, Turn};
use crate::answer::LaneId;
use crate::bench::{Grant, Rank};
use crate::effects::Verdict;
use crate::overtaking::Overtaking;

/// Somebody who is first in a line and lacks nothing but bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    turn: Turn,
    pub(super) account: AccountId,
    /// `None`: the first of those who acquire permits directly.
    pub(super) at: Option<LaneId>,
    /// The job's number, where it is a job.
    seq: u64,
    pub(super) bytes: u64,
}

impl<J, W> Admission<J, W> {
    /// Admits, in turn, everybody who may go now.
    pub(super) fn settle(&mut self) {
        self.settle_for(None);
    }

    /// The same, and hands a free worker its job before it calls others for what is left.
    pub(super) fn settle_for(&mut self, taker: Option<(usize, Rank)>) -> Option<Grant<J>> {
        while let Some(claim) = self.next_claim() {
            self.moved();
            let Some(at) = claim.at else {
                self.ledger.begin_permit(claim.bytes);
                let waiter = self.permits.grant_first(&mut self.accounts);
                self.effects.told.extend(waiter.map(|waiter| (waiter, Verdict::Go)));
                continue;
            };
            self.ledger.begin_job(claim.bytes);
            let (crew, accounts) = self.crew_and_accounts(at.crew);
            let submitter = crew.admit(at.lane, claim.seq, accounts);
            let has_outside = crew.has_outside(at.lane);
            self.effects.told.extend(submitter.map(|submitter| (submitter.waiter, Verdict::Go)));
            if has_outside {
                self.let_in(at);
            }
        }
        let taken = taker.and_then(|(crew, rank)| self.crew_mut(crew).take_ready(rank));
        for crew in self.crews.iter_mut().flatten() {
            crew.rouse(&mut self.effects.told);
        }
        taken
    }

    /// Ends the jobs whose time to start is over, if there are any.
    #[inline]
    pub(super) fn expire(&mut self) -> bool {
        let mut any = false;
        for id in 0..self.crews.len() {
            while let Some(crew) = &mut self.crews[id]
                && crew.has_expired(&self.accounts)
            {
                any = true;
                let lane = crew.expire_first(id, &mut self.effects, &mut self.accounts);
                if let Some(lane) = lane {
                    self.let_in(LaneId { crew: id, lane });
                }
            }
        }
        any
    }

    /// Who is admitted next, if anybody may be.
    ///
    /// Strict order (I2): while the first does not fit, whoever is behind it waits, even where
    /// there is room. A stream of small jobs would otherwise keep the big one out for ever, since
    /// some of them always hold the bytes it needs. There are two exceptions. A lane has what it
    /// was guaranteed: the first could not have that anyway. (So bytes that are guaranteed do not
    /// bring the worker that the first is to have.) And some may pass the first where the
    /// budget allows it, up to its bound.
    #[inline]
    fn next_claim(&mut self) -> Option<Claim> {
        let first = self.first_claim()?;
        if self.fits(first.account, first.bytes) {
            return Some(first);
        }
        if self.is_oversize(first.bytes) {
            // What is guaranteed to a lane and has no bytes would keep it from being alone.
            return self.pass(first);
        }
        self.first_within_guarantee(first).or_else(|| self.pass(first))
    }

    /// Whether a job in flight may have so many bytes more, as one that came last.
    pub(super) fn may_grow(&mut self, account: AccountId, bytes: u64) -> bool {
        let its = self.accounts.get(account);
        if bytes > its.terms.most_bytes.saturating_sub(its.held_bytes) || !self.ledger.fits(bytes) {
            return false;
        }
        let within_guarantee = bytes <= its.promised_bytes();
        // Whoever is first now does not fit, or would have gone.
        match self.first_claim() {
            Some(first) if !within_guarantee => {
                let may = self.may_pass_first(first) && self.fits(account, bytes);
                if may {
                    self.count_pass(first);
                }
                may
            }
            _ => self.fits(account, bytes),
        }
    }

    /// The first that fits passes those before it.
    fn pass(&mut self, first: Claim) -> Option<Claim> {
        if self.overtaking == Overtaking::NONE {
            return None;
        }
        if !self.may_pass_first(first) {
            return None;
        }
        let claim = self.first_that_fits()?;
        if let Some(at) = claim.at {
            let now = self.accounts.now();
            self.crew_mut(at.crew).lane_mut(at.lane).overtake(claim.seq, now);
        }
        // In its own lane it has been counted with the others.
        if claim.at.is_none() || claim.at != first.at {
            self.count_pass(first);
        }
        Some(claim)
    }

    fn may_pass_first(&self, first: Claim) -> bool {
        let (overtaking, now) = (self.overtaking, self.accounts.now());
        match first.at {
            Some(at) => self.crew(at.crew).lane(at.lane).may_pass(first.seq, &overtaking, now),
            None => self.permits.may_pass_first(&overtaking, now),
        }
    }

    fn count_pass(&mut self, first: Claim) {
        let now = self.accounts.now();
        match first.at {
            Some(at) => self.crew_mut(at.crew).lane_mut(at.lane).pass(first.seq, now),
            None => self.permits.pass_first(now),
        }
    }

    fn first_that_fits(&self) -> Option<Claim> {
        let acquirer = self.first_acquirer().filter(|claim| self.fits(claim.account, claim.bytes));
        let crews = self.crews.iter().enumerate();
        let jobs = crews.filter_map(|(id, crew)| {
            let fits = |account, bytes| self.fits(account, bytes);
            let crew = crew.as_ref()?;
            let (turn, lane, seq, bytes) =
                crew.first_that_fits(&self.accounts, &self.overtaking, fits)?;
            let account = crew.lane(lane).account;
            Some(Claim { turn, account, at: Some(LaneId { crew: id, lane }), seq, bytes })
        });
        jobs.chain(acquirer).min_by_key(|claim| claim.turn)
    }

    #[inline]
    pub(crate) fn fits(&self, account: AccountId, bytes: u64) -> bool {
        if self.accounts.promised_bytes() == 0 {
            return self.ledger.fits(bytes) || self.fits_alone(bytes);
        }
        let own_bytes = self.accounts.get(account).promised_bytes();
        let others_bytes = self.accounts.promised_to_others(account);
        let common_bytes = self.ledger.free_bytes().saturating_sub(others_bytes);
        let fits = bytes <= own_bytes || bytes <= common_bytes;
        fits && self.ledger.fits(bytes) || self.fits_alone(bytes)
    }

    /// Above the admissible bytes, and waiting: then it may be admitted, alone.
    pub(super) fn is_oversize(&self, bytes: u64) -> bool {
        bytes > self.ledger.admissible_bytes()
    }

    /// Alone by who is in flight and not by what is free: jobs of no bytes are in flight as well.
    fn fits_alone(&self, bytes: u64) -> bool {
        self.is_oversize(bytes) && self.ledger.is_idle()
    }

    /// The first of the first in all lines. A lane whose crew has no free worker for it makes no
    /// claim: it waits for a worker, and must not keep bytes from those who have one.
    #[inline]
    pub(super) fn first_claim(&self) -> Option<Claim> {
        let mut first = self.first_acquirer();
        for (id, crew) in self.crews.iter().enumerate() {
            let first_lane = crew.as_ref().and_then(|crew| crew.first(&self.accounts));
            let Some((turn, lane)) = first_lane else { continue };
            if first.is_none_or(|first| turn < first.turn) {
                first = Some(self.claim_of(turn, LaneId { crew: id, lane }));
            }
        }
        first
    }

    fn first_acquirer(&self) -> Option<Claim> {
        let (turn, bytes) = self.permits.first()?;
        Some(Claim { turn, account: self.permits.account(), at: None, seq: turn.seq, bytes })
    }

    /// The first of those who take nothing but what is guaranteed to them, and leave a worker to the
    /// first of all.
    fn first_within_guarantee(&self, first: Claim) -> Option<Claim> {
        let crews = self.crews.iter().enumerate();
        let claims = crews.filter_map(|(id, crew)| {
            let crew = crew.as_ref()?;
            let its_first = first.at.is_some_and(|at| at.crew == id).then_some(first.account);
            let (turn, lane) =
                crew.first_within_guarantee(its_first, &self.accounts, &self.ledger)?;
            Some(self.claim_of(turn, LaneId { crew: id, lane }))
        });
        claims.min_by_key(|claim| claim.turn)
    }

    fn claim_of(&self, turn: Turn, at: LaneId) -> Claim {
        let lane = self.crew(at.crew).lane(at.lane);
        let (_, entry) = lane.head().expect("a lane has a turn while it has a head");
        Claim { turn, account: lane.account, at: Some(at), seq: turn.seq, bytes: entry.bytes }
    }
}
