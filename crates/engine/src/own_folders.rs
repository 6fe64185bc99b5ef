//! The folders of the project into which Tribunal itself writes files for users.

use alloc::{format, string::String};

use crate::ids::RunId;

/// What the names of reports begin and end with. The run stands between them.
const REPORT_NAME_START: &str = "tribunal-";
const REPORT_NAME_END: &str = ".md";

/// Folders relative to the project's root, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFolders {
    /// The trackers of reviews.
    pub reviews: String,
    /// The questions that wait for the user, as files in which the answer can be written.
    pub decisions: String,
    /// The reports of sprints and stories. Users may keep files of their own in a folder of this name, so only those that
    /// [`OwnFolders::is_report`] names are Tribunal's.
    pub reports: String,
}

impl OwnFolders {
    /// The decisions and the reports lie beside the reviews.
    pub fn beside_reviews(reviews_dir: &str) -> OwnFolders {
        let reviews_dir = reviews_dir.trim_end_matches('/');
        let parent_prefix = reviews_dir.rfind('/').map_or("", |slash| &reviews_dir[..=slash]);
        OwnFolders {
            reviews: String::from(reviews_dir),
            decisions: format!("{parent_prefix}awaiting-human"),
            reports: format!("{parent_prefix}reports"),
        }
    }

    /// Lists the folders in which every file is Tribunal's own.
    pub fn list_all(&self) -> [&str; 2] {
        [&self.reviews, &self.decisions]
    }

    /// Whether a path of the project lies in one of the folders in which every file is Tribunal's own.
    pub fn contains_path(&self, path: &str) -> bool {
        self.list_all()
            .iter()
            .any(|folder| path.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    /// The path of the report of a run.
    pub fn report_path(&self, run_id: &RunId) -> String {
        format!("{}/{REPORT_NAME_START}{run_id}{REPORT_NAME_END}", self.reports)
    }

    /// The paths of all reports, with `*` for the run.
    pub fn report_pattern(&self) -> String {
        format!("{}/{REPORT_NAME_START}*{REPORT_NAME_END}", self.reports)
    }

    /// Whether a path of the project is that of a report.
    pub fn is_report(&self, path: &str) -> bool {
        let run_part = path
            .strip_prefix(self.reports.as_str())
            .and_then(|rest| rest.strip_prefix('/'))
            .and_then(|file_name| file_name.strip_prefix(REPORT_NAME_START))
            .and_then(|rest| rest.strip_suffix(REPORT_NAME_END));
        run_part.is_some_and(|run_part| !run_part.is_empty() && !run_part.contains('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_named_like_reports_are_reports() {
        let own_folders = OwnFolders::beside_reviews("out/reviews/");
        let report_path = own_folders.report_path(&RunId::new("sprint-k3f9"));
        assert_eq!(report_path, "out/reports/tribunal-sprint-k3f9.md");
        assert!(own_folders.is_report(&report_path));
        for other_path in [
            "out/reports/quarter.md",
            "out/reports/tribunal-.md",
            "out/reports/tribunal-a/b.md",
            "out/reports/tribunal-a.txt",
            "reports/tribunal-a.md",
            "out/reports",
        ] {
            assert!(!own_folders.is_report(other_path), "{other_path}");
        }
        assert!(!own_folders.contains_path(&report_path), "the folder may have files of the user");
        assert_eq!(OwnFolders::beside_reviews("reviews").reports, "reports");
    }
}
