//! Password hashes with scrypt.

use std::fmt::Write;
use std::ops::RangeInclusive;

use admit::Cost;
use admit::preset::{self, PresetError};
use scrypt::{Params, scrypt};
use serde::Deserialize;

/// With less a hash is no protection, with more one request takes all the memory.
const LOG_N: RangeInclusive<u8> = 10..=17;
const R: u32 = 8;
const P: u32 = 1;

/// A password to be hashed: the JSON that clients send.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Password {
    password: String,
    salt: String,
    log_n: u8,
}

impl Password {
    pub(crate) fn from_json(json: &[u8]) -> Result<Password, String> {
        // serde takes an array for its fields in order.
        if json.trim_ascii_start().starts_with(b"[") {
            return Err(String::from("expected an object"));
        }
        let password: Password = serde_json::from_slice(json).map_err(|why| why.to_string())?;
        if LOG_N.contains(&password.log_n) {
            Ok(password)
        } else {
            let (least, most) = LOG_N.into_inner();
            Err(format!("log_n is {}, and {least} to {most} are possible", password.log_n))
        }
    }

    pub(crate) fn log_n(&self) -> u8 {
        self.log_n
    }

    pub(crate) fn cost(&self) -> Result<Cost, PresetError> {
        let input_bytes = self.password.len() + self.salt.len();
        Ok(preset::scrypt(self.log_n, R, P)?.input(input_bytes as u64))
    }

    /// 64 hexadecimal digits.
    pub(crate) fn hash(&self) -> String {
        let params = Params::new(self.log_n, R, P).expect("log_n was checked");
        let mut hash = [0; 32];
        scrypt(self.password.as_bytes(), self.salt.as_bytes(), &params, &mut hash)
            .expect("32 bytes are a length that scrypt gives");
        hash.iter().fold(String::with_capacity(64), |mut digits, byte| {
            write!(digits, "{byte:02x}").expect("a string takes anything");
            digits
        })
    }
}
