//! One scrypt hash.

use std::fmt;

use admit::{Cost, preset};
use scrypt::Params;

/// What is hashed, and how. All of it is known in advance, so equal ones have equal results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Hash {
    password: &'static str,
    salt: &'static str,
    log_n: u8,
    r: u32,
    p: u32,
}

/// The test vectors of RFC 7914, section 12.
pub(crate) const RFC_7914: [(Hash, &str); 4] = [
    (
        Hash { password: "", salt: "", log_n: 4, r: 1, p: 1 },
        "77d6576238657b203b19ca42c18a0497f16b4844e3074ae8dfdffa3fede21442\
         fcd0069ded0948f8326a753a0fc81f17e8d3e0fb2e0d3628cf35e20c38d18906",
    ),
    (
        Hash { password: "password", salt: "NaCl", log_n: 10, r: 8, p: 16 },
        "fdbabe1c9d3472007856e7190d01e9fe7c6ad7cbc8237830e77376634b373162\
         2eaf30d92e22a3886ff109279d9830dac727afb94a83ee6d8360cbdfa2cc0640",
    ),
    (
        Hash { log_n: 14, ..PLEASE_LET_ME_IN },
        "7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2\
         d5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887",
    ),
    (
        Hash { log_n: 20, ..PLEASE_LET_ME_IN },
        "2101cb9b6a511aaeaddbbe09cf70f881ec568d574a2ffd4dabe5ee9820adaa47\
         8e56fd8f4ba5d09ffa1c6d927c40f4c337304049e8a952fbcbf45c6fa77a41a4",
    ),
];

const PLEASE_LET_ME_IN: Hash =
    Hash { password: "pleaseletmein", salt: "SodiumChloride", log_n: 14, r: 8, p: 1 };

impl Hash {
    /// The hash whose large table has this many bytes, if there is one.
    pub(crate) fn of_size(bytes: u64) -> Option<Hash> {
        let blocks = bytes / (128 * u64::from(PLEASE_LET_ME_IN.r));
        if !bytes.is_power_of_two() || blocks < 2 {
            return None;
        }
        Some(Hash { log_n: u8::try_from(blocks.ilog2()).ok()?, ..PLEASE_LET_ME_IN })
    }

    pub(crate) fn cost(&self) -> Cost {
        preset::scrypt(self.log_n, self.r, self.p).expect("all parameters are within RFC 7914")
    }

    /// The derived key, in hexadecimal.
    pub(crate) fn compute(&self) -> String {
        let params = Params::new(self.log_n, self.r, self.p)
            .expect("memory for it was admitted, so its size fits the address space");
        let mut key = [0_u8; 64];
        scrypt::scrypt(self.password.as_bytes(), self.salt.as_bytes(), &params, &mut key)
            .expect("64 bytes is a valid length");
        key.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scrypt with log_n {}, r {}, p {}", self.log_n, self.r, self.p)
    }
}
