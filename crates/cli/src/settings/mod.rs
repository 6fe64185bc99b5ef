//! `tribunal.yaml`: what people wrote ([`raw`]), and what it means for one run ([`resolve`]).
//!
//! Unknown keys are refused with the line and the nearest known key. A run is pinned to what comes out here: editing the
//! file does not change a run that has started.

mod raw;
mod resolve;

pub(crate) use raw::RawSettings;
pub(crate) use resolve::{Wishes, resolve};

/// The known name nearest to what was typed, if it is near enough to be a slip.
pub(crate) fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let scored = known.iter().map(|name| (strsim::jaro_winkler(&typed, &name.to_lowercase()), *name));
    scored.filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}
