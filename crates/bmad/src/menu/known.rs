//! The shapes that BMAD's eras use, by their keys. They were counted in BMAD's own step files; the census is among the tests.

use super::{Shape, group::Candidate};

/// The keys of each shape, in capitals and in alphabetical order.
const KNOWN: &[&str] = &[
    // Sections of a document, with more and with fewer options; the next step; resuming.
    "ACP", "ACPY", "ACFP", "APX", "AC", "BC", "CD", "CE", "CX", "CORX", "NY",
    // Quick flow: modes, escalation, findings, a spec to read, to approve, to split.
    "ET", "ETW", "EP", "EPW", "FSW", "ACEPQ", "ABDPR", "AE", "KS",
    // Editing and validating a PRD.
    "ESVX", "SU", "CEX", "EIRX", "ASVX", "ABC", "CES", "EFRX",
    // The agents and workflows of the builder.
    "CEV", "AEPRS", "ERS", "ACMOPT", "AS", "AFR", "ABCD", "ABCDX", "DMT", "CMRT",
    // Brainstorming, sharding a document, a proposal to change course.
    "ABCKT", "DKM", "AES",
];

/// Whether a candidate has the keys of a known menu.
pub(super) fn is_known(candidate: &Candidate) -> bool {
    if matches!(candidate.shape(), Shape::Exit | Shape::Iteration | Shape::Elicitation) {
        return true;
    }
    if candidate.options.iter().all(|option| option.key.parse::<u32>().is_ok()) {
        // Numbers count from one without gaps.
        let in_order = candidate.options.iter().zip(1_u32..).all(|(option, at)| option.key.parse() == Ok(at));
        return in_order && candidate.options.len() >= 2;
    }
    let keys = sorted(candidate);
    KNOWN.contains(&keys.as_str())
}

/// The candidate's keys in the order of the table.
pub(super) fn sorted(candidate: &Candidate) -> String {
    let keys: String = candidate.options.iter().take(40).map(|option| option.key.as_str()).collect();
    ordered(&keys)
}

fn ordered(keys: &str) -> String {
    let mut keys: Vec<char> = keys.to_uppercase().chars().collect();
    keys.sort_unstable();
    keys.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_can_be_looked_up() {
        assert!(KNOWN.iter().all(|keys| ordered(keys) == *keys), "keys in order");
        assert_eq!(KNOWN.iter().collect::<HashSet<_>>().len(), KNOWN.len(), "none twice");
    }
}
