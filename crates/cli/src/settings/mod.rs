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
pub(crate) mod command_values;
mod drivers;
mod file_reader;
mod hints;
mod hooks;
mod inputs;
mod kind;
mod layers;
mod origin;
mod pinned;
mod reload;
mod resolve;
mod roster;
mod schema;
mod selection;
mod show;
mod table;
#[cfg(test)]
mod tests;
mod trust_items;
mod typed;

pub(crate) use drivers::find_driver;
pub(crate) use file_reader::{ReadMode, read_settings};
pub(crate) use hints::suggest_argv;
pub(crate) use hooks::resolve_hook_settings;
pub(crate) use inputs::RunInputs;
pub(crate) use layers::{
    EffectiveSettings, SETTINGS_FILE, SettingSources, describe_ignored_file, gather_settings, gather_user_settings,
};
pub(crate) use origin::SettingLayer;
pub(crate) use pinned::is_pinned_in;
pub(crate) use reload::{LoopFileSettings, ReloadedRun, reload_run};
pub(crate) use resolve::{
    ResolvedLoop, ResolvedSettings, chosen_progress, find_clones_root, resolve_check_settings, resolve_loop_settings,
    resolve_reviews_dir, resolve_settings, resolve_sprint_settings, resolve_story_settings, survey_settings,
};
pub(crate) use schema::settings_schema;
pub(crate) use show::{SettingsDocument, default_as_written, draw_settings, draw_settings_file, draw_survey};
pub(crate) use trust_items::{all_project_items, items_of_text, user_item_hashes};
pub(crate) use typed::{HookSettings, ThroughputLimits};

/// Finds the known name that is nearest to what was typed, if it is near enough to be a typo.
pub(crate) fn nearest_name<'a>(typed_name: &str, known: &[&'a str]) -> Option<&'a str> {
    let typed_name = typed_name.to_lowercase();
    // Jaro-Winkler favours a common beginning, which is where typed names are mostly right.
    let scored_names =
        known.iter().map(|known_name| (strsim::jaro_winkler(&typed_name, &known_name.to_lowercase()), *known_name));
    scored_names
        .filter(|(similarity, _)| *similarity >= 0.8)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, known_name)| known_name)
}
