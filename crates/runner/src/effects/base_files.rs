//! Remembers files of commits.

use std::sync::{Mutex, PoisonError};

use tribunal_engine::ids::CommitId;

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
    /// A story has one file and a board, and the start of a run reads few others.
    const MAX_FILES: usize = 4;

    /// Returns the content of a file in a commit; `None` if the commit does not have it. Where it is not known yet, a second file that
    /// will be needed later is read with it.
    pub fn read_file(
        &self,
        commit: &CommitId,
        path: &str,
        needed_later: Option<&str>,
        read_files: impl FnOnce(&[&str]) -> Vec<Option<Vec<u8>>>,
    ) -> Option<Vec<u8>> {
        let mut last_read = self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        let find_known = |last_read: &[BaseFile], path: &str| {
            let known = last_read.iter().find(|file| file.commit == *commit && file.path == path);
            known.map(|known| known.content.clone())
        };
        if let Some(content) = find_known(&last_read, path) {
            return Some(content);
        }
        let later_path = needed_later.filter(|later_path| find_known(&last_read, later_path).is_none());
        let paths: Vec<&str> = later_path.into_iter().chain([path]).collect();
        for (path, content) in paths.iter().zip(read_files(&paths)) {
            // Without a content git may have failed, so it is asked again.
            let Some(content) = content else { continue };
            last_read.truncate(Self::MAX_FILES - 1);
            last_read.insert(0, BaseFile { commit: commit.clone(), path: path.to_string(), content });
        }
        find_known(&last_read, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_a_failed_reading_is_repeated() {
        let base_files = BaseFiles::default();
        let (first, second) = (CommitId::new("aaaa"), CommitId::new("bbbb"));
        let read = |commit, path: &str, content: Option<u8>| {
            base_files.read_file(commit, path, None, |paths| {
                assert_eq!(paths, [path]);
                vec![content.map(|byte| vec![byte])]
            })
        };
        let read_known = |commit, path| base_files.read_file(commit, path, None, |_| panic!("it is known"));
        assert_eq!(read(&first, "a.md", None), None);
        assert_eq!(read(&first, "a.md", Some(1)), Some(vec![1]));
        assert_eq!(read_known(&first, "a.md"), Some(vec![1]));
        assert_eq!(read(&second, "a.md", Some(2)), Some(vec![2]));
        for number in 0..4 {
            read(&second, &format!("{number}.md"), Some(number));
        }
        assert_eq!(read(&first, "a.md", Some(3)), Some(vec![3]));
        let both = base_files.read_file(&first, "b.md", Some("c.md"), |paths| {
            assert_eq!(paths, ["c.md", "b.md"]);
            vec![Some(vec![5]), Some(vec![4])]
        });
        assert_eq!(both, Some(vec![4]));
        assert_eq!(read_known(&first, "c.md"), Some(vec![5]));
    }
}
