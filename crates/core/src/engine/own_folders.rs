//! The folders of the project into which Tribunal itself writes files for users.

use alloc::{format, string::String};

/// Folders relative to the project's root, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFolders {
    /// The trackers of reviews.
    pub reviews: String,
    /// The questions that wait for the user, as files in which the answer can be written.
    pub decisions: String,
}

impl OwnFolders {
    /// The decisions lie beside the reviews.
    pub fn beside_reviews(reviews_dir: &str) -> OwnFolders {
        let reviews_dir = reviews_dir.trim_end_matches('/');
        let parent_prefix = reviews_dir.rfind('/').map_or("", |slash| &reviews_dir[..=slash]);
        OwnFolders { reviews: String::from(reviews_dir), decisions: format!("{parent_prefix}awaiting-human") }
    }

    pub fn list_all(&self) -> [&str; 2] {
        [&self.reviews, &self.decisions]
    }

    /// Whether a path of the project lies in one of the folders.
    pub fn contains_path(&self, path: &str) -> bool {
        self.list_all()
            .iter()
            .any(|folder| path.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }
}
