//! The shapes that BMAD's eras use, by their keys. They were counted in BMAD's own step files; the census is among the tests.

use super::{MenuShape, group::MenuCandidate};

/// The keys of each shape, in capitals and in alphabetical order.
const KNOWN_KEYS: &[&str] = &[
    // Sections of a document, with more and with fewer options; the next step; resuming.
    "ACP", "ACPY", "ACFP", "APX", "AC", "BC", "CD", "CE", "CX", "CORX", "NY",
    // Quick flow: modes, escalation, findings, a spec to read, to approve, to split.
    "ET", "ETW", "EP", "EPW", "FSW", "ACEPQ", "ABDPR", "AE", "KS", // Below: editing and validating a PRD.
    "ESVX", "SU", "CEX", "EIRX", "ASVX", "ABC", "CES", "EFRX", // Below: the agents and workflows of the builder.
    "CEV", "AEPRS", "ERS", "ACMOPT", "AS", "AFR", "ABCD", "ABCDX", "DMT", "CMRT",
    // Brainstorming, sharding a document, a proposal to change course.
    "ABCKT", "DKM", "AES",
];

/// Whether a candidate has the keys of a known menu.
pub(super) fn has_known_shape(candidate: &MenuCandidate) -> bool {
    if matches!(
        candidate.menu_shape(),
        MenuShape::Exit | MenuShape::Iteration | MenuShape::Elicitation | MenuShape::Named
    ) {
        return true;
    }
    if candidate.options.iter().all(|option| option.key.parse::<u32>().is_ok()) {
        // Numbers count from one without gaps.
        let in_order = candidate
            .options
            .iter()
            .zip(1_u32..)
            .all(|(option, expected_number)| option.key.parse() == Ok(expected_number));
        return in_order && candidate.options.len() >= 2;
    }
    let key_letters = sorted_keys(candidate);
    KNOWN_KEYS.contains(&key_letters.as_str())
}

/// The candidate's keys in the order of the table.
pub(super) fn sorted_keys(candidate: &MenuCandidate) -> String {
    let key_letters: String = candidate.options.iter().take(40).map(|option| option.key.as_str()).collect();
    sort_keys(&key_letters)
}

fn sort_keys(key_letters: &str) -> String {
    let mut key_letters: Vec<char> = key_letters.to_uppercase().chars().collect();
    key_letters.sort_unstable();
    key_letters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_keys_of_the_table_are_sorted_and_unique() {
        assert!(KNOWN_KEYS.iter().all(|keys| sort_keys(keys) == *keys), "keys in order");
        assert_eq!(KNOWN_KEYS.iter().collect::<HashSet<_>>().len(), KNOWN_KEYS.len(), "none twice");
    }
}
