//! Parking: a file of the user is stored as it is before it is replaced.
//!
//! Parked files are never overwritten, and are removed only together with their run (`gc`).

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use tribunal_core::ids::RunId;

use crate::{files::write_privately, project::Project};

/// Stores the content of the file at `relative_path`, durable on return. Returns where, relative to the project's root.
pub(crate) fn park_file(project: &Project, run: &RunId, path: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let folder = project.parked(run);
    if let Some(there) = project.leads_out(&folder) {
        return Err(io::Error::other(format!("it would go out of the project, to {}", there.display())));
    }
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let mut number = 1;
    // Files of several directories may have the same name, so a number makes them unique.
    let parked = loop {
        let path = folder.join(format!("{number}-{name}"));
        if fs::symlink_metadata(&path).is_err() {
            break path;
        }
        number += 1;
    };
    write_privately(&parked, bytes)?;
    Ok(parked.strip_prefix(project.root()).map(Path::to_path_buf).unwrap_or(parked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_one_name_are_parked_beside_each_other() {
        let root = tempfile::tempdir().unwrap();
        let project = Project::at(root.path());
        let run = RunId::new("plan-aaaa");
        let park = |path, bytes: &[u8]| park_file(&project, &run, path, bytes).unwrap();
        assert_eq!(park("a/mod.rs", b"one"), Path::new(".tribunal/parked/plan-aaaa/1-mod.rs"));
        assert_eq!(park("b/mod.rs", b"\xff"), Path::new(".tribunal/parked/plan-aaaa/2-mod.rs"));
        assert_eq!(fs::read(root.path().join(".tribunal/parked/plan-aaaa/1-mod.rs")).unwrap(), b"one");
        assert_eq!(fs::read(root.path().join(".tribunal/parked/plan-aaaa/2-mod.rs")).unwrap(), b"\xff");
    }
}
