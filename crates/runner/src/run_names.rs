//! Names of runs and loops, and ids of commands that start several runs.

use std::time::SystemTime;

use tribunal_engine::ids::{BatchId, Hash, RunId};

const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// The most characters of a slug that the name of a run begins with. Names are typed on command lines, so they stay short.
const MAX_SLUG_CHARS: usize = 24;

/// Returns what the names of all runs with this slug begin with. Runs with other slugs may begin with the same.
pub(crate) fn name_start(slug: &str) -> String {
    format!("{}-", shorten_slug(slug))
}

fn shorten_slug(slug: &str) -> String {
    let mut shortened: String = slug.chars().take(MAX_SLUG_CHARS).collect();
    shortened.truncate(shortened.trim_end_matches('-').len());
    shortened
}

/// Returns a name such as `prd-k3f9`: the slug, and four characters that make it unique in this project.
pub(crate) fn new_run_name(slug: &str, taken_names: &[RunId]) -> RunId {
    let prefix = shorten_slug(slug);
    // A collision is unlikely, and a new salt gives a new name.
    for salt in 0_u32.. {
        let candidate = RunId::new(format!("{prefix}-{}", random_characters(4, salt)));
        if !taken_names.contains(&candidate) {
            return candidate;
        }
    }
    RunId::new(prefix)
}

/// Returns an id for a command that starts several runs. It is never typed, so it may be longer than the name of a run.
pub fn new_batch_id() -> BatchId {
    BatchId::new(random_characters(12, 0))
}

/// Returns characters that differ from moment to moment and from process to process.
fn random_characters(character_count: usize, salt: u32) -> String {
    let seed = format!("{:?} {} {salt}", SystemTime::now(), std::process::id());
    let seed_hash = Hash::digest_of(seed.as_bytes());
    let pick_character = |hex_pair: &[u8]| {
        let digit_value = |byte: &u8| (*byte as char).to_digit(16).unwrap_or(0) as usize;
        let value = hex_pair.iter().fold(0_usize, |value, byte| value * 16 + digit_value(byte));
        ALPHABET[value % ALPHABET.len()] as char
    };
    seed_hash.as_str().as_bytes().chunks(2).take(character_count).map(pick_character).collect()
}
