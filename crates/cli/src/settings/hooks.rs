//! The settings that hooks need, and nothing else: they are read at every step of a session.
//!
//! No agent is resolved and no other section is checked against the table, so a mistake in another section does not stop a
//! hook. BMAD's file is not read, because `hooks` in it belong to BMAD.

use std::path::Path;

use tribunal_runner::project::SettingsFileChoice;

use super::{
    file_reader,
    layers::{self, EffectiveSettings, SettingSources},
    origin::SettingLayer,
    typed::HookSettings,
};
use crate::messages::user_errors::UserError;

const HOOKS_SECTION: &str = "hooks";

/// Folds the layers as for a run, but only this section of them.
pub(crate) fn resolve_hook_settings(project_root: &Path, sources: &SettingSources) -> Result<HookSettings, UserError> {
    let mut effective = EffectiveSettings::default();
    let mut problems = Vec::new();
    for (setting_layer, file_path) in [
        (SettingLayer::User, sources.user_file.clone()),
        (SettingLayer::Project, Some(project_root.join(SettingsFileChoice::from_root(project_root).file_name))),
    ] {
        let Some((source_name, source_text)) =
            file_path.map(|file_path| layers::read_settings_file(&file_path)).transpose()?.flatten()
        else {
            continue;
        };
        // Most files have no such section and need not be parsed at all.
        if !source_text.contains(HOOKS_SECTION) {
            continue;
        }
        let mut file_reading = file_reader::read_section(&source_name, &source_text, HOOKS_SECTION);
        problems.append(&mut file_reading.problems);
        effective.apply_reading(setting_layer, &source_name, file_reading);
    }
    // Flags do not exist here: clients start hooks.
    for (variable_name, variable_text) in
        sources.variables.iter().filter(|(variable_name, _)| variable_name.starts_with("TRIBUNAL_HOOKS__"))
    {
        layers::apply_variable(&mut effective, variable_name, variable_text, &mut problems);
    }
    match file_reader::problems_to_error(&problems) {
        Some(user_error) => Err(user_error),
        None => Ok(effective.to_typed().hooks),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use tribunal_guard::{GuardPolicy, WriteBounds};

    use super::{super::layers::SETTINGS_FILE, *};

    fn resolve_hooks(project_yaml: &str, user_yaml: &str, variables: &[(&str, &str)]) -> Result<HookSettings, String> {
        let directory = tempfile::tempdir().unwrap();
        let (project_root, user_file) = (directory.path().join("app"), directory.path().join("user.yaml"));
        fs::create_dir(&project_root).unwrap();
        fs::write(project_root.join(SETTINGS_FILE), project_yaml).unwrap();
        fs::write(&user_file, user_yaml).unwrap();
        let variables = variables
            .iter()
            .map(|(variable_name, variable_text)| (variable_name.to_string(), variable_text.to_string()))
            .collect();
        let sources = SettingSources { user_file: Some(user_file), variables, ..SettingSources::default() };
        let error_text =
            |user_error: UserError| user_error.to_string().replace(&directory.path().display().to_string(), "");
        let hooks_alone = resolve_hook_settings(&project_root, &sources).map_err(error_text);
        // If both can be read, they must agree.
        if let (Ok(hooks_alone), Ok(all_settings)) = (&hooks_alone, layers::gather_settings(&project_root, &sources)) {
            assert_eq!(*hooks_alone, all_settings.to_typed().hooks);
        }
        hooks_alone
    }

    fn hours_to_duration(hour_count: u64) -> Duration {
        Duration::from_secs(hour_count * 3600)
    }

    #[test]
    fn guards_are_on_by_default() {
        let hook_settings = resolve_hooks("", "", &[]).unwrap();
        assert_eq!(hook_settings, HookSettings::default());
        assert_eq!(hook_settings.guard, GuardPolicy::default());
        assert_eq!(
            (hook_settings.guard.paths, hook_settings.stale_after),
            (WriteBounds::Project, hours_to_duration(24))
        );
        assert!(hook_settings.guard.own_files && hook_settings.guard.destructive);
    }

    #[test]
    fn the_strongest_layer_wins() {
        let project_yaml = "tier: 2\nhooks:\n  guard_paths: subject\n  guard_destructive: false\n";
        let hook_settings = resolve_hooks(project_yaml, "hooks: {guard_paths: off, stale_after: 3}\n", &[]).unwrap();
        assert_eq!(
            (hook_settings.guard.paths, hook_settings.stale_after),
            (WriteBounds::Subject, hours_to_duration(3))
        );
        assert!(hook_settings.guard.own_files && !hook_settings.guard.destructive);
        let variables = [("TRIBUNAL_HOOKS__GUARD_PATHS", "off"), ("TRIBUNAL_HOOKS__STALE_AFTER", "48")];
        let hook_settings = resolve_hooks(project_yaml, "", &variables).unwrap();
        assert_eq!((hook_settings.guard.paths, hook_settings.stale_after), (WriteBounds::Off, hours_to_duration(48)));
    }

    #[test]
    fn only_problems_in_the_hooks_section_are_reported() {
        let hook_settings =
            resolve_hooks("tier: 99\nagents: {use: nobody}\nhooks: {guard_paths: off}\n", "", &[]).unwrap();
        assert_eq!(hook_settings.guard.paths, WriteBounds::Off);
        let wrong_yaml = "hooks:\n  guard_paths: projct\n  guard_own: true\n  stale_after: 0\n";
        insta::assert_snapshot!(resolve_hooks(wrong_yaml, "", &[]).unwrap_err());
        assert!(resolve_hooks("hooks: [\n", "", &[]).is_err());
        assert!(resolve_hooks("", "", &[("TRIBUNAL_HOOKS__GUARD_PATHS", "no")]).is_err());
    }
}
