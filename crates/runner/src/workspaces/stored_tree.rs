//! Creates a workspace from what git stored: raw blobs, without any filters that the project configures.

use std::{collections::BTreeMap, fs, io, os::unix::fs::PermissionsExt, path::Path};

use tribunal_engine::ids::Hash;

use super::{
    WorkspaceSource, git_queries, is_never_copied,
    listing::{CopyExtent, CopyLimits, link_stays_inside, measure_files},
    omissions::OmissionRemarks,
};
use crate::project::subject::is_plain_path;

const EXECUTABLE_MODE: &str = "100755";
const LINK_MODE: &str = "120000";
const SUBMODULE_MODE: &str = "160000";

/// What was written, by path.
#[derive(Default)]
pub(super) struct WrittenTree {
    pub files: BTreeMap<String, Hash>,
    /// Links that stay inside; they are not created yet.
    pub links: BTreeMap<String, String>,
}

/// Writes a commit or tree of git into `tree_dir`.
pub(super) fn write_stored_tree(
    source: &WorkspaceSource<'_>,
    tree_name: &str,
    tree_dir: &Path,
    limits: CopyLimits,
    remarks: &mut OmissionRemarks,
) -> io::Result<WrittenTree> {
    let chosen_entries = choose_entries(source, tree_name, limits, remarks)?;
    let object_ids: Vec<&str> = chosen_entries.values().map(|entry| entry.object_id.as_str()).collect();
    let mut remaining_entries = chosen_entries.iter();
    let mut links = BTreeMap::new();
    let mut file_hashes = BTreeMap::new();
    git_queries::read_objects(source.project_root, &object_ids, |bytes| {
        let Some((relative_path, entry)) = remaining_entries.next() else { return Ok(()) };
        if entry.file_mode == LINK_MODE {
            links.insert(relative_path.clone(), String::from_utf8_lossy(bytes).into_owned());
            return Ok(());
        }
        let target_path = tree_dir.join(relative_path);
        if let Some(directory) = target_path.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&target_path, bytes)?;
        file_hashes.insert(relative_path.clone(), Hash::digest_of(bytes));
        let permission_bits = if entry.file_mode == EXECUTABLE_MODE { 0o755 } else { 0o644 };
        fs::set_permissions(&target_path, fs::Permissions::from_mode(permission_bits))
    })?;
    // Whether a link stays inside depends on the other links it passes, so all of them have to be known first.
    let link_target = |relative_path: &str| links.get(relative_path).cloned();
    let (inside_links, outside_links): (BTreeMap<_, _>, BTreeMap<_, _>) = links
        .clone()
        .into_iter()
        .partition(|(relative_path, target)| link_stays_inside(relative_path, target, &link_target));
    remarks.outside_links.extend(outside_links.into_keys());
    Ok(WrittenTree { files: file_hashes, links: inside_links })
}

/// Chooses the stored entries that are copied within the limits.
fn choose_entries(
    source: &WorkspaceSource<'_>,
    tree_name: &str,
    limits: CopyLimits,
    remarks: &mut OmissionRemarks,
) -> io::Result<BTreeMap<String, git_queries::LsTreeEntry>> {
    let tree_entries = git_queries::list_tree(source.project_root, tree_name).map_err(io::Error::other)?;
    let mut chosen_entries = BTreeMap::new();
    for mut entry in tree_entries {
        match String::from_utf8(std::mem::take(&mut entry.path_bytes)) {
            Err(_) => remarks.undecodable_names += 1,
            // A tree object can contain any path, also one that leads out of the workspace or into `.git`.
            Ok(relative_path) if !is_plain_path(&relative_path) || is_never_copied(&relative_path) => {}
            Ok(relative_path) if entry.file_mode == SUBMODULE_MODE => remarks.missing_submodules.push(relative_path),
            Ok(relative_path) => {
                chosen_entries.insert(relative_path, entry);
            }
        }
    }
    let file_sizes = chosen_entries.iter().map(|(relative_path, entry)| (relative_path.as_str(), entry.size));
    let extent = CopyExtent::widest_within(file_sizes.clone(), source.subject_files, limits);
    remarks.report_narrowing(measure_files(file_sizes), limits, extent);
    chosen_entries.retain(|relative_path, _| extent.includes(relative_path, source.subject_files));
    Ok(chosen_entries)
}
