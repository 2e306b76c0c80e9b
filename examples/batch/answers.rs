//! What each hash has to be.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use parking_lot::Mutex;
use thiserror::Error;

use crate::hash::{Hash, RFC_7914};

/// The right result of each hash: the published one, or else the first that was computed.
#[derive(Debug)]
pub(crate) struct Answers {
    known: Mutex<HashMap<Hash, String>>,
}

/// A hash came out differently from what was published or computed before.
#[derive(Debug, Error)]
#[error("{hash}: result is {actual} and should be {expected}")]
pub(crate) struct WrongAnswer {
    hash: Hash,
    actual: String,
    expected: String,
}

impl Answers {
    pub(crate) fn of_rfc_7914() -> Answers {
        let known = RFC_7914.map(|(hash, key)| (hash, key.to_owned()));
        Answers { known: Mutex::new(HashMap::from(known)) }
    }

    /// Whether there was something to compare the result with.
    pub(crate) fn check(&self, hash: Hash, actual: String) -> Result<bool, WrongAnswer> {
        match self.known.lock().entry(hash) {
            Entry::Vacant(place) => {
                place.insert(actual);
                Ok(false)
            }
            Entry::Occupied(expected) if *expected.get() == actual => Ok(true),
            Entry::Occupied(expected) => {
                Err(WrongAnswer { hash, actual, expected: expected.get().clone() })
            }
        }
    }
}
