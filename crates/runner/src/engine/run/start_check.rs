//! What a project must provide before a run can start. A start checks this first, and `tribunal doctor` asks the same, so the
//! two cannot disagree. Nothing is written here.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};
use tribunal_store::{Store, StoreError};
use tribunal_workflows::runs::{plan::RunPlan, settings::Settings};

use super::{RunError, Runner};
use crate::{engine::journal::mask_json_strings, masking::Masker, project::Project};

/// What Tribunal writes below `.tribunal`: a link in place of any of these could lead out of the project.
const OWN_PATHS: [&str; 10] = [
    "",
    "/locks",
    "/work",
    "/originals",
    "/checkpoints",
    "/logs",
    "/reviews",
    "/.gitignore",
    "/journal.db",
    "/journal.db-wal",
];

impl Runner {
    /// Checks whether a run could keep its files and its journal in the project.
    pub fn check_project(project: &Project, settings: &Settings) -> Result<(), RunError> {
        refuse_outside_paths(project, settings)?;
        check_home_dir(project).map_err(|(path, cause)| RunError::Project { project: path, cause })?;
        Store::check_openable(&project.home_dir())?;
        Ok(())
    }

    /// Refuses settings that contain a secret. They are pinned in the journal, and the journal is masked, so a command line with
    /// a secret would come back broken.
    pub fn refuse_secrets(masker: &Masker, plan: &RunPlan) -> Result<(), RunError> {
        let unwritable = |cause| RunError::Store(StoreError::UnwritableEntry(cause));
        let mut settings_json = serde_json::to_value((&plan.settings, &plan.order)).map_err(unwritable)?;
        if !mask_json_strings(masker, &mut settings_json) {
            return Ok(());
        }
        Err(RunError::SecretInSettings { place: find_masked_string(&settings_json).unwrap_or_default() })
    }
}

/// Refuses to start if a link in the project would lead our own files out of it.
pub(super) fn refuse_outside_paths(project: &Project, settings: &Settings) -> Result<(), RunError> {
    for own_path in OWN_PATHS {
        refuse_leading_out(project, &format!(".tribunal{own_path}"))?;
    }
    settings.own_folders().list_all().iter().try_for_each(|folder| refuse_leading_out(project, folder))
}

pub(super) fn refuse_leading_out(project: &Project, relative_path: &str) -> Result<(), RunError> {
    match project.resolve_outside(&project.root().join(relative_path)) {
        Some(real_target) => Err(RunError::LeadsOut { path: relative_path.to_string(), to: real_target }),
        None => Ok(()),
    }
}

/// Checks that `.tribunal` and the directory of locks exist or could be created, and that files can be created in them.
fn check_home_dir(project: &Project) -> Result<(), (PathBuf, io::Error)> {
    let mut innermost_dir = project.root().to_path_buf();
    for directory in [project.root().to_path_buf(), project.home_dir(), project.locks_dir()] {
        match fs::metadata(&directory) {
            Ok(metadata) if metadata.is_dir() => innermost_dir.clone_from(&directory),
            Ok(_) => return Err((directory, io::ErrorKind::NotADirectory.into())),
            // What is missing will be created in the innermost directory that exists.
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => break,
            Err(cause) => return Err((directory, cause)),
        }
        // The root only has to be writable if `.tribunal` must be created in it.
        if directory != project.root() {
            check_writable(&directory)?;
        }
    }
    check_writable(&innermost_dir)
}

fn check_writable(directory: &Path) -> Result<(), (PathBuf, io::Error)> {
    access(directory, Access::WRITE_OK | Access::EXEC_OK).map_err(|cause| (directory.to_path_buf(), cause.into()))
}

fn find_masked_string(json_value: &serde_json::Value) -> Option<String> {
    match json_value {
        serde_json::Value::String(text) => text.contains("[masked:").then(|| text.clone()),
        serde_json::Value::Array(items) => items.iter().find_map(find_masked_string),
        serde_json::Value::Object(map) => map.values().find_map(find_masked_string),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tribunal_testkit::samples::sample_settings;

    use super::*;

    /// Checks a project that `prepare` has put into its temporary directory, and returns the error.
    fn check_project_with(prepare: impl FnOnce(&Path)) -> Option<RunError> {
        let directory = tempfile::tempdir().unwrap();
        prepare(directory.path());
        let files_before = fs::read_dir(directory.path()).unwrap().count();
        let check_result = Runner::check_project(&Project::from_root(directory.path()), &sample_settings());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), files_before, "a check creates nothing");
        check_result.err()
    }

    #[test]
    fn a_project_is_ready_with_and_without_a_journal() {
        assert!(check_project_with(|_| {}).is_none());
        assert!(check_project_with(|root| drop(Store::open(&root.join(".tribunal")).unwrap())).is_none());
        assert!(check_project_with(|root| fs::create_dir_all(root.join(".tribunal/locks")).unwrap()).is_none());
    }

    #[test]
    fn files_in_place_of_directories_are_refused() {
        for wrong_path in [".tribunal", ".tribunal/locks"] {
            let check_error = check_project_with(|root| {
                fs::create_dir_all(root.join(wrong_path).parent().unwrap()).unwrap();
                fs::write(root.join(wrong_path), "").unwrap();
            });
            let Some(RunError::Project { project, cause }) = check_error else {
                panic!("{wrong_path}: {check_error:?}")
            };
            assert!(project.ends_with(wrong_path) && cause.kind() == io::ErrorKind::NotADirectory, "{wrong_path}");
        }
    }

    #[test]
    fn a_journal_that_cannot_be_opened_is_refused() {
        let no_journal = check_project_with(|root| {
            fs::create_dir(root.join(".tribunal")).unwrap();
            fs::write(root.join(".tribunal/journal.db"), "this is a diary, and a long enough one to be read").unwrap();
        });
        assert!(matches!(no_journal, Some(RunError::Store(StoreError::NotAJournal { .. }))), "{no_journal:?}");
        let directory_instead =
            check_project_with(|root| fs::create_dir_all(root.join(".tribunal/journal.db")).unwrap());
        assert!(matches!(directory_instead, Some(RunError::Store(_))), "{directory_instead:?}");
    }

    #[test]
    fn a_link_that_leads_out_is_refused() {
        let check_error =
            check_project_with(|root| std::os::unix::fs::symlink("/nowhere", root.join(".tribunal")).unwrap());
        assert!(matches!(check_error, Some(RunError::LeadsOut { .. })), "{check_error:?}");
    }
}
