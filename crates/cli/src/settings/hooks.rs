//! The settings that hooks need, and nothing else: they are read at every step of a session.
//!
//! No agent is resolved and no other section is checked against the table, so a mistake in another section does not stop a
//! hook. BMAD's file is not read, because `hooks` in it belong to BMAD.

use std::path::Path;

use super::{
    layers::{self, Effective, FILE, Given},
    origin::Layer,
    read,
    typed::HookSettings,
};
use crate::complaint::Complaint;

const SECTION: &str = "hooks";

/// Folds the layers as for a run, but only this section of them.
pub(crate) fn hooks_of(root: &Path, given: &Given) -> Result<HookSettings, Complaint> {
    let mut effective = Effective::default();
    let mut problems = Vec::new();
    for (layer, path) in [(Layer::User, given.user_file.clone()), (Layer::Project, Some(root.join(FILE)))] {
        let Some((name, text)) = path.map(|path| layers::text_of(&path)).transpose()?.flatten() else {
            continue;
        };
        // Most files have no such section and need not be parsed at all.
        if !text.contains(SECTION) {
            continue;
        }
        let mut reading = read::read_section(&name, &text, SECTION);
        problems.append(&mut reading.problems);
        effective.take(layer, &name, reading);
    }
    // Flags do not exist here: clients start hooks.
    for (name, text) in given.variables.iter().filter(|(name, _)| name.starts_with("TRIBUNAL_HOOKS__")) {
        layers::variable(&mut effective, name, text, &mut problems);
    }
    match read::complaint(&problems) {
        Some(complaint) => Err(complaint),
        None => Ok(effective.typed().hooks),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use tribunal_guard::{Bounds, GuardPolicy};

    use super::*;

    fn read(project: &str, user: &str, variables: &[(&str, &str)]) -> Result<HookSettings, String> {
        let folder = tempfile::tempdir().unwrap();
        let (root, user_file) = (folder.path().join("app"), folder.path().join("user.yaml"));
        fs::create_dir(&root).unwrap();
        fs::write(root.join(FILE), project).unwrap();
        fs::write(&user_file, user).unwrap();
        let variables = variables.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        let given = Given { user_file: Some(user_file), variables, flags: Vec::new() };
        let said =
            |complaint: Complaint| complaint.to_string().replace(&folder.path().display().to_string(), "");
        let alone = hooks_of(&root, &given).map_err(said);
        // If both can be read, they must agree.
        if let (Ok(alone), Ok(all)) = (&alone, layers::gather(&root, &given)) {
            assert_eq!(*alone, all.typed().hooks);
        }
        alone
    }

    fn hours(hours: u64) -> Duration {
        Duration::from_secs(hours * 3600)
    }

    #[test]
    fn guards_are_on_unless_somebody_says_otherwise() {
        let settings = read("", "", &[]).unwrap();
        assert_eq!(settings, HookSettings::default());
        assert_eq!(settings.guard, GuardPolicy::default());
        assert_eq!((settings.guard.paths, settings.stale_after), (Bounds::Project, hours(24)));
        assert!(settings.guard.own_files && settings.guard.destructive);
    }

    #[test]
    fn the_nearest_layer_wins() {
        let project = "tier: 2\nhooks:\n  guard_paths: subject\n  guard_destructive: false\n";
        let settings = read(project, "hooks: {guard_paths: off, stale_after: 3}\n", &[]).unwrap();
        assert_eq!((settings.guard.paths, settings.stale_after), (Bounds::Subject, hours(3)));
        assert!(settings.guard.own_files && !settings.guard.destructive);
        let variables = [("TRIBUNAL_HOOKS__GUARD_PATHS", "off"), ("TRIBUNAL_HOOKS__STALE_AFTER", "48")];
        let settings = read(project, "", &variables).unwrap();
        assert_eq!((settings.guard.paths, settings.stale_after), (Bounds::Off, hours(48)));
    }

    #[test]
    fn a_slip_elsewhere_is_nobody_s_here_and_one_in_here_is_named() {
        let settings = read("tier: 99\nagents: {use: nobody}\nhooks: {guard_paths: off}\n", "", &[]).unwrap();
        assert_eq!(settings.guard.paths, Bounds::Off);
        let wrong = "hooks:\n  guard_paths: projct\n  guard_own: true\n  stale_after: 0\n";
        insta::assert_snapshot!(read(wrong, "", &[]).unwrap_err());
        assert!(read("hooks: [\n", "", &[]).is_err());
        assert!(read("", "", &[("TRIBUNAL_HOOKS__GUARD_PATHS", "no")]).is_err());
    }
}
