//! The reports of runs, as files for users. The binary renders them when a run has ended or waits.

use std::io;

use crate::{
    locks::lock_user_tree,
    project::{Project, atomic_files::write_atomically},
};

/// Writes a report to a path of the project, in place of an earlier one. Nothing is written through a link out of the project.
pub fn write_report(project: &Project, relative_path: &str, report_text: &str) -> io::Result<()> {
    let report_path = project.root().join(relative_path);
    if let Some(real_target) = project.resolve_outside(&report_path) {
        return Err(io::Error::other(format!("it points outside the project, to {}", real_target.display())));
    }
    // Other runs that watch the project tell this file from one that an agent writes.
    let _alone = lock_user_tree(&project.locks_dir())?;
    write_atomically(&report_path, report_text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_report_replaces_the_earlier_one_and_never_leaves_the_project() {
        let directory = tempfile::tempdir().unwrap();
        let project = Project::from_root(directory.path().join("project"));
        project.prepare_home().unwrap();
        for report_text in ["one", "two"] {
            write_report(&project, "out/reports/tribunal-a.md", report_text).unwrap();
            assert_eq!(fs::read_to_string(project.root().join("out/reports/tribunal-a.md")).unwrap(), report_text);
        }
        let elsewhere = directory.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, project.root().join("linked")).unwrap();
        let refusal = write_report(&project, "linked/tribunal-a.md", "three").unwrap_err();
        assert!(refusal.to_string().contains("points outside the project"), "{refusal}");
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}
