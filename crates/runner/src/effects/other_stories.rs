//! Knows which files are those of stories.

use std::{collections::BTreeSet, fs, io};

use tribunal_bmad::{config, story_files::find_story_files};

use crate::project::{Project, project_files::ProjectDirectory, subject::find_link_on_path};

/// Makes the directories above a file that an agent has removed. Links are not followed.
pub(super) fn make_parent_dirs(project: &Project, path: &str) -> io::Result<()> {
    let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
    match find_link_on_path(project.root(), directory) {
        None => fs::create_dir_all(project.root().join(directory)),
        Some(link) => Err(io::Error::other(format!("{} is a link", link))),
    }
}

/// Where the stories of a project are by the user's own files. The configuration in a clone is the agent's.
pub(super) struct OtherStories {
    folder: String,
    files: BTreeSet<String>,
}

impl OtherStories {
    pub fn of_project(project: &Project) -> OtherStories {
        let project_files = ProjectDirectory::open_project(project);
        let folders = config::read_config(&project_files).folders;
        let found = find_story_files(&project_files, &folders, None);
        let files = found.all().map(|file| file.path.clone()).collect();
        OtherStories { folder: folders.implementation, files }
    }

    /// Whether a file is that of a story, or is where a new one would be.
    pub fn may_contain(&self, path: &str) -> bool {
        let is_inside = path.strip_prefix(&self.folder).is_some_and(|rest| rest.starts_with('/'));
        is_inside || self.files.contains(path)
    }
}
