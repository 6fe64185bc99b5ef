//! Names of runs and loops.

use std::time::SystemTime;

use tribunal_core::ids::{Hash, RunId};

const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// Returns a name such as `prd-k3f9`: the slug, and four characters that make it unique in this project.
pub(crate) fn new_run_name(prefix: &str, taken_names: &[RunId]) -> RunId {
    // Names are typed on command lines, so they stay short.
    let mut prefix: String = prefix.chars().take(24).collect();
    prefix.truncate(prefix.trim_end_matches('-').len());
    // A collision is unlikely, and a new salt gives a new name.
    for salt in 0_u32.. {
        let seed = format!("{:?} {} {salt}", SystemTime::now(), std::process::id());
        let seed_hash = Hash::digest_of(seed.as_bytes());
        let suffix = seed_hash.as_str().as_bytes().chunks(2).take(4).map(|hex_pair| {
            let value = hex_pair
                .iter()
                .fold(0_usize, |value, byte| value * 16 + (*byte as char).to_digit(16).unwrap_or(0) as usize);
            ALPHABET[value % ALPHABET.len()] as char
        });
        let candidate = RunId::new(format!("{prefix}-{}", suffix.collect::<String>()));
        if !taken_names.contains(&candidate) {
            return candidate;
        }
    }
    RunId::new(prefix)
}
