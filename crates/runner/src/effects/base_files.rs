//! Remembers files of commits.

use std::sync::{Mutex, PoisonError};

use tribunal_core::engine::ids::CommitId;

/// Files of commits that were read last. A commit never changes, and git need not be started again for it.
#[derive(Debug, Default)]
pub(crate) struct BaseFiles {
    last_read: Mutex<Vec<BaseFile>>,
}

#[derive(Debug)]
struct BaseFile {
    commit: CommitId,
    path: String,
    content: Vec<u8>,
}

impl BaseFiles {
    /// A story has one file, and the start of a run reads few others.
    const MAX_FILES: usize = 4;

    /// Returns the content of a file in a commit; `None` if the commit does not have it.
    pub fn read_file(
        &self,
        commit: &CommitId,
        path: &str,
        read_file: impl FnOnce() -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let mut last_read = self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last_read.iter().find(|file| file.commit == *commit && file.path == path) {
            return Some(known.content.clone());
        }
        // Without a content git may have failed, so it is asked again.
        let content = read_file()?;
        last_read.truncate(Self::MAX_FILES - 1);
        last_read.insert(0, BaseFile { commit: commit.clone(), path: path.to_string(), content: content.clone() });
        Some(content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_a_failed_reading_is_repeated() {
        let base_files = BaseFiles::default();
        let (first, second) = (CommitId::new("aaaa"), CommitId::new("bbbb"));
        assert_eq!(base_files.read_file(&first, "a.md", || None), None);
        assert_eq!(base_files.read_file(&first, "a.md", || Some(vec![1])), Some(vec![1]));
        assert_eq!(base_files.read_file(&first, "a.md", || panic!("it is known")), Some(vec![1]));
        assert_eq!(base_files.read_file(&second, "a.md", || Some(vec![2])), Some(vec![2]));
        for number in 0..4 {
            base_files.read_file(&second, &format!("{number}.md"), || Some(vec![number]));
        }
        assert_eq!(base_files.read_file(&first, "a.md", || Some(vec![3])), Some(vec![3]));
    }
}
