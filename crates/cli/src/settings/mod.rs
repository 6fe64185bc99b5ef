//! Settings: what the user wrote, in which layer, and what it means for one run.
//!
//! [`table`] knows every setting and which field of [`typed`] it fills; the field has the default, and [`codec`] converts
//! between the two. `tribunal_bmad::yaml` reads YAML with its lines; [`file_reader`] checks a file against the table;
//! [`layers`] folds files, environment and flags; [`resolve`], [`agents`], [`drivers`], [`selection`] and [`roster`] turn the
//! result into a run's settings; [`show`] and [`schema`] explain them to users and to editors; [`hooks`] is the part that
//! hooks need, and quick. Unknown keys are refused with the line and the nearest known key. A run is pinned to the result:
//! editing a file does not change a run that has started. Which commands may run at all is decided elsewhere, see `trust`.

mod agents;
mod codec;
mod drivers;
mod hints;
mod hooks;
mod kind;
mod layers;
mod origin;
mod read;
mod resolve;
mod roster;
mod running;
mod schema;
mod selection;
mod show;
mod table;
#[cfg(test)]
mod tests;
mod typed;
mod wishes;

pub(crate) use drivers::driver_of;
pub(crate) use hooks::hooks_of;
pub(crate) use layers::{Effective, FILE, Given, gather, of_the_person};
pub(crate) use origin::Layer;
pub(crate) use read::{Manner, read};
pub(crate) use resolve::{Resolved, resolve, survey};
pub(crate) use running::{all_items, items_of_text, person_s_items};
pub(crate) use schema::schema;
pub(crate) use show::{Document, draw, draw_file, draw_survey, written_default};
pub(crate) use typed::{HookSettings, Share};
pub(crate) use wishes::Wishes;

/// Finds the known name that is nearest to what was typed, if it is near enough to be a typo.
pub(crate) fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    // Jaro-Winkler favours a common beginning, which is where typed names are mostly right.
    let scored = known.iter().map(|name| (strsim::jaro_winkler(&typed, &name.to_lowercase()), *name));
    scored.filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}
