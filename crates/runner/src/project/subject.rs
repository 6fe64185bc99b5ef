//! Loads a subject, and says clearly why a file cannot be one.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

use crate::file_limits::MAX_SUBJECT_BYTES;

#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    #[error("{path} does not exist")]
    Missing { path: String },
    #[error("`{path}` is a directory; pass files, or `{path}/*.md`")]
    Folder { path: String },
    #[error("{path} is not a regular file")]
    Special { path: String },
    #[error("could not read {path}: {cause}")]
    Unreadable { path: String, cause: io::Error },
    #[error("{path} is empty; nothing to review")]
    Empty { path: String },
    #[error("{path} is not text ({why})")]
    Binary { path: String, why: &'static str },
    #[error("{path} is too large ({}, limit {})", format_megabytes(*size), format_megabytes(MAX_SUBJECT_BYTES))]
    TooLong { path: String, size: u64 },
    #[error("{path} is outside the project {root}")]
    Outside { path: String, root: String },
}

fn format_megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}

/// Returns the path relative to the project's root, with symbolic links resolved.
pub fn relative_to_root(project_root: &Path, subject_path: &Path) -> Result<String, SubjectError> {
    let shown_path = subject_path.display().to_string();
    let real_path = fs::canonicalize(subject_path).map_err(|cause| read_error(&shown_path, cause))?;
    let canonical_root =
        fs::canonicalize(project_root).map_err(|cause| read_error(&project_root.display().to_string(), cause))?;
    let relative_path = real_path
        .strip_prefix(&canonical_root)
        .map_err(|_| SubjectError::Outside { path: shown_path.clone(), root: canonical_root.display().to_string() })?;
    match relative_path.to_str() {
        Some(path_text) => Ok(path_text.to_string()),
        None => Err(SubjectError::Binary { path: shown_path, why: "its name is not valid UTF-8" }),
    }
}

fn read_error(path: &str, cause: io::Error) -> SubjectError {
    let path = path.to_string();
    match cause.kind() {
        io::ErrorKind::NotFound => SubjectError::Missing { path },
        _ => SubjectError::Unreadable { path, cause },
    }
}

/// Reads a subject. `relative_path` is relative to the project's root.
pub fn load_subject(project_root: &Path, relative_path: &str) -> Result<String, SubjectError> {
    let full_path: PathBuf = project_root.join(relative_path);
    // The project's own directory has no name within it.
    let shown_path = if relative_path.is_empty() { ".".to_string() } else { relative_path.to_string() };
    let file_metadata = fs::metadata(&full_path).map_err(|cause| read_error(relative_path, cause))?;
    if file_metadata.is_dir() {
        return Err(SubjectError::Folder { path: shown_path });
    }
    if !file_metadata.is_file() {
        return Err(SubjectError::Special { path: shown_path });
    }
    // The size is checked before reading, so that a huge file never gets into memory.
    if file_metadata.len() > MAX_SUBJECT_BYTES {
        return Err(SubjectError::TooLong { path: shown_path, size: file_metadata.len() });
    }
    let bytes = fs::read(&full_path).map_err(|cause| read_error(relative_path, cause))?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(SubjectError::Empty { path: shown_path });
    }
    if bytes.contains(&0) {
        return Err(SubjectError::Binary { path: shown_path, why: "contains NUL bytes" });
    }
    String::from_utf8(bytes).map_err(|_| SubjectError::Binary { path: shown_path, why: "not valid UTF-8" })
}

/// Refuses a path that leads outside: a recorded one may lead elsewhere by now, or may come from a journal of another origin.
pub(crate) fn ensure_inside(project_root: &Path, relative_path: &str) -> Result<(), SubjectError> {
    let outside_error =
        || SubjectError::Outside { path: relative_path.to_string(), root: project_root.display().to_string() };
    if !is_plain_path(relative_path) {
        return Err(outside_error());
    }
    let project_root =
        fs::canonicalize(project_root).map_err(|cause| read_error(&project_root.display().to_string(), cause))?;
    let real_path =
        fs::canonicalize(project_root.join(relative_path)).map_err(|cause| read_error(relative_path, cause))?;
    if real_path.starts_with(&project_root) { Ok(()) } else { Err(outside_error()) }
}

/// Whether a relative path has only normal components, so that it cannot leave its root.
pub(crate) fn is_plain_path(relative_path: &str) -> bool {
    Path::new(relative_path).components().all(|component| matches!(component, Component::Normal(_)))
}

/// Returns the first directory on a path that is a link: a file written there would end up somewhere else.
pub(crate) fn find_link_on_path(project_root: &Path, relative_path: &str) -> Option<String> {
    let directories =
        Path::new(relative_path).ancestors().skip(1).filter(|directory| !directory.as_os_str().is_empty());
    let link_path = directories.filter(|directory| project_root.join(directory).is_symlink()).last()?;
    Some(link_path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_path_that_leads_out_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let project_root = directory.path().join("project");
        fs::create_dir(&project_root).unwrap();
        fs::write(project_root.join("in.md"), "in").unwrap();
        fs::write(directory.path().join("out.md"), "out").unwrap();
        std::os::unix::fs::symlink("../out.md", project_root.join("link.md")).unwrap();
        assert!(ensure_inside(&project_root, "in.md").is_ok());
        let outside = directory.path().join("out.md").display().to_string();
        for path in ["../out.md", "link.md", &outside] {
            assert!(matches!(ensure_inside(&project_root, path), Err(SubjectError::Outside { .. })), "{path}");
        }
    }
}
