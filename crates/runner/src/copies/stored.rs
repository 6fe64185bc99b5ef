//! Creates a workspace from what git stored: raw blobs, without any filters that the project configures.

use std::{collections::BTreeMap, fs, io, os::unix::fs::PermissionsExt, path::Path};

use tribunal_core::ids::Hash;

use super::{
    Source, git, is_never_copied,
    listing::{Bounds, Extent, leads_inside, measure},
    remarks::Remarks,
};
use crate::subject::is_plain;

const EXECUTABLE: &str = "100755";
const LINK: &str = "120000";
const SUBMODULE: &str = "160000";

/// What was written, by path.
#[derive(Default)]
pub(super) struct Written {
    pub files: BTreeMap<String, Hash>,
    /// Links that stay inside; they are not created yet.
    pub links: BTreeMap<String, String>,
}

/// Writes a commit or tree of git into `tree_dir`.
pub(super) fn write(
    source: &Source<'_>,
    name: &str,
    tree: &Path,
    bounds: Bounds,
    remarks: &mut Remarks,
) -> io::Result<Written> {
    let found = chosen(source, name, bounds, remarks)?;
    let wanted: Vec<&str> = found.values().map(|entry| entry.object.as_str()).collect();
    let mut entries = found.iter();
    let mut links = BTreeMap::new();
    let mut files = BTreeMap::new();
    git::objects(source.root, &wanted, |bytes| {
        let Some((path, entry)) = entries.next() else { return Ok(()) };
        if entry.mode == LINK {
            links.insert(path.clone(), String::from_utf8_lossy(bytes).into_owned());
            return Ok(());
        }
        let to = tree.join(path);
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&to, bytes)?;
        files.insert(path.clone(), Hash::of(bytes));
        let mode = if entry.mode == EXECUTABLE { 0o755 } else { 0o644 };
        fs::set_permissions(&to, fs::Permissions::from_mode(mode))
    })?;
    // Whether a link stays inside depends on the other links it passes, so all of them have to be known first.
    let link = |path: &str| links.get(path).cloned();
    let (inside, out): (BTreeMap<_, _>, BTreeMap<_, _>) =
        links.clone().into_iter().partition(|(path, target)| leads_inside(path, target, &link));
    remarks.links.extend(out.into_keys());
    Ok(Written { files, links: inside })
}

/// Chooses the stored entries that are copied within the limits.
fn chosen(
    source: &Source<'_>,
    name: &str,
    bounds: Bounds,
    remarks: &mut Remarks,
) -> io::Result<BTreeMap<String, git::Stored>> {
    let all = git::stored(source.root, name).map_err(|why| io::Error::other(format!("git: {why}")))?;
    let mut found = BTreeMap::new();
    for mut entry in all {
        match String::from_utf8(std::mem::take(&mut entry.path)) {
            Err(_) => remarks.odd_names += 1,
            // A tree object can contain any path, also one that leads out of the workspace or into `.git`.
            Ok(path) if !is_plain(&path) || is_never_copied(&path) => {}
            Ok(path) if entry.mode == SUBMODULE => remarks.submodules.push(path),
            Ok(path) => {
                found.insert(path, entry);
            }
        }
    }
    let sizes = found.iter().map(|(path, entry)| (path.as_str(), entry.size));
    let extent = Extent::of(sizes.clone(), source.files, bounds);
    remarks.too_much(measure(sizes), bounds, extent);
    found.retain(|path, _| extent.has(path, source.files));
    Ok(found)
}
