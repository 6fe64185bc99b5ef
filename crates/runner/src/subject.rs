//! Loads a subject, and says clearly why a file cannot be one.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
};

/// A longer subject cannot be reviewed with care.
pub const LIMIT: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    #[error("{path} does not exist")]
    Missing { path: String },
    #[error("{path} is a folder; a review is of one file")]
    Folder { path: String },
    #[error("{path} is neither a file nor a folder")]
    Special { path: String },
    #[error("{path} cannot be read: {cause}")]
    Unreadable { path: String, cause: io::Error },
    #[error("{path} is empty; there is nothing to review")]
    Empty { path: String },
    #[error("{path} is not text ({why})")]
    Binary { path: String, why: &'static str },
    #[error("{path} has {} and a subject may have {}", megabytes(*size), megabytes(LIMIT))]
    TooLong { path: String, size: u64 },
    #[error("{path} is outside the project {root}")]
    Outside { path: String, root: String },
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / f64::from(1 << 20))
}

/// Returns the path relative to the project's root, with symbolic links resolved.
pub fn relative(root: &Path, path: &Path) -> Result<String, SubjectError> {
    let shown = path.display().to_string();
    let real = fs::canonicalize(path).map_err(|cause| unreadable(&shown, cause))?;
    let root = fs::canonicalize(root).map_err(|cause| unreadable(&root.display().to_string(), cause))?;
    let inside = real
        .strip_prefix(&root)
        .map_err(|_| SubjectError::Outside { path: shown.clone(), root: root.display().to_string() })?;
    match inside.to_str() {
        Some(text) => Ok(text.to_string()),
        None => Err(SubjectError::Binary { path: shown, why: "its name is no UTF-8" }),
    }
}

fn unreadable(path: &str, cause: io::Error) -> SubjectError {
    let path = path.to_string();
    match cause.kind() {
        io::ErrorKind::NotFound => SubjectError::Missing { path },
        _ => SubjectError::Unreadable { path, cause },
    }
}

/// Reads a subject. `relative_path` is relative to the project's root.
pub fn load(root: &Path, path: &str) -> Result<String, SubjectError> {
    let full: PathBuf = root.join(path);
    // The project's own directory has no name within it.
    let shown = if path.is_empty() { ".".to_string() } else { path.to_string() };
    let meta = fs::metadata(&full).map_err(|cause| unreadable(path, cause))?;
    if meta.is_dir() {
        return Err(SubjectError::Folder { path: shown });
    }
    if !meta.is_file() {
        return Err(SubjectError::Special { path: shown });
    }
    // The size is checked before reading, so that a huge file never gets into memory.
    if meta.len() > LIMIT {
        return Err(SubjectError::TooLong { path: shown, size: meta.len() });
    }
    let bytes = fs::read(&full).map_err(|cause| unreadable(path, cause))?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(SubjectError::Empty { path: shown });
    }
    if bytes.contains(&0) {
        return Err(SubjectError::Binary { path: shown, why: "it contains NUL bytes" });
    }
    String::from_utf8(bytes).map_err(|_| SubjectError::Binary { path: shown, why: "it is no UTF-8" })
}

/// Refuses a path that leads outside: a recorded one may lead elsewhere by now, or may come from a journal of another origin.
pub(crate) fn stays_inside(root: &Path, path: &str) -> Result<(), SubjectError> {
    let outside = || SubjectError::Outside { path: path.to_string(), root: root.display().to_string() };
    if !is_plain(path) {
        return Err(outside());
    }
    let root = fs::canonicalize(root).map_err(|cause| unreadable(&root.display().to_string(), cause))?;
    let real = fs::canonicalize(root.join(path)).map_err(|cause| unreadable(path, cause))?;
    if real.starts_with(&root) { Ok(()) } else { Err(outside()) }
}

/// Whether a relative path has only normal components, so that it cannot leave its root.
pub(crate) fn is_plain(path: &str) -> bool {
    Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

/// Returns the first part of a path that is a link: a file written there would end up somewhere else.
pub(crate) fn link_on_the_way(root: &Path, path: &str) -> Option<String> {
    let folders = Path::new(path).ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
    let link = folders.filter(|folder| root.join(folder).is_symlink()).last()?;
    Some(link.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_path_that_leads_out_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("in.md"), "in").unwrap();
        fs::write(folder.path().join("out.md"), "out").unwrap();
        std::os::unix::fs::symlink("../out.md", root.join("link.md")).unwrap();
        assert!(stays_inside(&root, "in.md").is_ok());
        let outside = folder.path().join("out.md").display().to_string();
        for path in ["../out.md", "link.md", &outside] {
            assert!(matches!(stays_inside(&root, path), Err(SubjectError::Outside { .. })), "{path}");
        }
    }
}
