//! Names of runs and loops.

use std::time::SystemTime;

use tribunal_core::ids::{Hash, RunId};

const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// Returns a name such as `prd-k3f9`: the slug, and four characters that make it unique in this project.
pub(crate) fn fresh(slug: &str, taken: &[RunId]) -> RunId {
    // Names are typed on command lines, so they stay short.
    let mut slug: String = slug.chars().take(24).collect();
    slug.truncate(slug.trim_end_matches('-').len());
    // A collision is unlikely, and a new salt gives a new name.
    for salt in 0_u32.. {
        let seed = format!("{:?} {} {salt}", SystemTime::now(), std::process::id());
        let hash = Hash::of(seed.as_bytes());
        let digits = hash.as_str().as_bytes().chunks(2).take(4).map(|pair| {
            let sum = pair
                .iter()
                .fold(0_usize, |sum, byte| sum * 16 + (*byte as char).to_digit(16).unwrap_or(0) as usize);
            ALPHABET[sum % ALPHABET.len()] as char
        });
        let run = RunId::new(format!("{slug}-{}", digits.collect::<String>()));
        if !taken.contains(&run) {
            return run;
        }
    }
    RunId::new(slug)
}
