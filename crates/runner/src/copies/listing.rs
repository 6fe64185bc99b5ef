//! Lists what belongs into a workspace: the subject, what git would track (every ordinary file, where there is no git), and
//! ignored files that agents need. Nothing is copied here.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, Metadata},
    path::Path,
};

use super::{NEVER, Source, git, is_never_copied, remarks::Remarks};
use crate::subject::is_plain;

/// The number and size of files that are copied for a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub files: usize,
    pub bytes: u64,
}

/// How much of a project a workspace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    All,
    /// The directories of the subject's files, without their subdirectories.
    Folders,
    Files,
}

impl Extent {
    /// Returns the widest extent within the limits.
    pub fn of<'a>(
        found: impl Iterator<Item = (&'a str, u64)> + Clone,
        files: &[String],
        bounds: Bounds,
    ) -> Extent {
        let fits = |extent: &Extent| {
            let Bounds { files: count, bytes } =
                measure(found.clone().filter(|(path, _)| extent.has(path, files)));
            count <= bounds.files && bytes <= bounds.bytes
        };
        [Extent::All, Extent::Folders].into_iter().find(fits).unwrap_or(Extent::Files)
    }

    pub fn has(self, path: &str, files: &[String]) -> bool {
        match self {
            Extent::All => true,
            Extent::Folders => files.iter().any(|file| folder(file) == folder(path)),
            Extent::Files => files.iter().any(|file| file == path),
        }
    }
}

/// Returns the number of files and their total size.
pub(super) fn measure<'a>(found: impl Iterator<Item = (&'a str, u64)>) -> Bounds {
    let nothing = Bounds { files: 0, bytes: 0 };
    found.fold(nothing, |sum, (_, size)| Bounds { files: sum.files + 1, bytes: sum.bytes + size })
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The files that were found, by relative path.
#[derive(Default)]
pub(super) struct Listing {
    pub files: BTreeMap<String, Metadata>,
    /// Links that stay inside, with their targets.
    pub links: BTreeMap<String, String>,
    /// Whether git listed the files and all of them are included.
    pub whole: bool,
}

/// Scans the project, link by link and directory by directory.
struct Look<'a> {
    root: &'a Path,
    bounds: Bounds,
    listing: Listing,
    /// Whether a path and all its parents are directories and not links.
    real: HashMap<String, bool>,
    remarks: &'a mut Remarks,
}

pub(super) fn look(source: &Source<'_>, bounds: Bounds, remarks: &mut Remarks) -> Listing {
    let mut look = Look::new(source.root, bounds, remarks);
    // Git knows best which files belong to the project; walking the directory is only the fallback.
    let by_git = match git::list(source.root) {
        Ok(listed) => {
            look.tracked(&listed);
            true
        }
        Err(why) => {
            // Without a repository copying all files is normal and needs no remark.
            if source.root.join(".git").exists() {
                look.remarks.say(format!("git cannot say what is ignored, so all files are copied: {why}"));
            }
            look.walk("", Walk::Context);
            // The walk stopped at the limit, so it may have missed the directories of the subject.
            if !look.remarks.counted_on {
                look.siblings(source.files);
            }
            false
        }
    };
    // The subject's files come before the limits apply, since they always have to be there.
    for file in source.files {
        look.add(file);
    }
    let whole = look.narrow(source.files);
    look.seeds(source.seeds);
    look.listing.whole = by_git && whole;
    look.listing
}

/// Lists the ignored files that agents need, for a workspace from a stored tree.
pub(super) fn look_at_seeds(source: &Source<'_>, bounds: Bounds, remarks: &mut Remarks) -> Listing {
    let mut look = Look::new(source.root, bounds, remarks);
    look.seeds(source.seeds);
    look.listing
}

/// What a walk leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// Leaves out what tools leave behind.
    Context,
    /// Leaves out other repositories, such as work trees that agents created.
    Seed,
}

impl<'a> Look<'a> {
    fn new(root: &'a Path, bounds: Bounds, remarks: &'a mut Remarks) -> Look<'a> {
        let real = HashMap::from([(String::new(), true)]);
        Look { root, bounds, listing: Listing::default(), real, remarks }
    }

    fn tracked(&mut self, listed: &[u8]) {
        for entry in git::listed(listed) {
            let Ok(path) = std::str::from_utf8(entry.path) else {
                self.remarks.odd_names += 1;
                continue;
            };
            let parts = || path.split('/');
            if !is_plain(path) || is_never_copied(path) {
                continue;
            }
            if entry.submodule {
                // A submodule that is not checked out is an empty directory.
                let there = self.is_real(path) && self.root.join(path).join(".git").exists();
                if there {
                    self.walk(path, Walk::Context);
                }
            } else if let Some(repository) = path.strip_suffix('/') {
                // Git lists a nested repository as a directory with a slash at its end.
                self.remarks.repositories.push(repository.to_string());
            } else if entry.tracked || !parts().any(|part| NEVER.contains(&part)) {
                self.add(path);
            }
        }
    }

    /// Adds an ordinary file, or a link that stays inside; nothing else.
    fn add(&mut self, path: &str) {
        // What lies behind a linked directory is not part of the project.
        if !self.is_real(folder(path)) {
            return;
        }
        let Ok(meta) = fs::symlink_metadata(self.root.join(path)) else { return };
        if meta.is_file() {
            self.listing.files.insert(path.to_string(), meta);
        } else if meta.is_symlink() {
            let target = fs::read_link(self.root.join(path)).ok();
            let link =
                |path: &str| Some(fs::read_link(self.root.join(path)).ok()?.to_string_lossy().into_owned());
            match target.as_deref().and_then(Path::to_str) {
                Some(target) if leads_inside(path, target, &link) => {
                    self.listing.links.insert(path.to_string(), target.to_string());
                }
                _ => self.remarks.links.push(path.to_string()),
            }
        }
    }

    fn is_real(&mut self, path: &str) -> bool {
        if let Some(known) = self.real.get(path) {
            return *known;
        }
        let is_folder =
            |path: &str| fs::symlink_metadata(self.root.join(path)).is_ok_and(|meta| meta.is_dir());
        let real = is_folder(path) && self.is_real(folder(path));
        self.real.insert(path.to_string(), real);
        real
    }

    /// Adds everything below a directory until the limit is exceeded.
    fn walk(&mut self, below: &str, how: Walk) {
        let mut folders = vec![below.to_string()];
        let most = self.listing.files.len() + self.bounds.files;
        while let Some(folder) = folders.pop() {
            for item in fs::read_dir(self.root.join(&folder)).into_iter().flatten().flatten() {
                let Ok(name) = item.file_name().into_string() else {
                    self.remarks.odd_names += 1;
                    continue;
                };
                if is_never_copied(&name) || (how == Walk::Context && NEVER.contains(&name.as_str())) {
                    continue;
                }
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if !item.file_type().is_ok_and(|kind| kind.is_dir()) {
                    self.add(&path);
                } else if how == Walk::Seed && item.path().join(".git").exists() {
                    self.remarks.repositories.push(path);
                } else {
                    folders.push(path);
                }
            }
            if self.listing.files.len() > most {
                self.remarks.counted_on = false;
                return;
            }
        }
    }

    /// Adds the files beside the subject, which a walk that stopped early may have missed.
    fn siblings(&mut self, files: &[String]) {
        for folder in files.iter().map(|file| folder(file)) {
            for item in fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten() {
                if let Ok(name) = item.file_name().into_string() {
                    self.add(&if folder.is_empty() { name } else { format!("{folder}/{name}") });
                }
            }
        }
    }

    /// Removes what exceeds the limits. Returns whether nothing had to be removed.
    fn narrow(&mut self, files: &[String]) -> bool {
        let found = self.listing.files.iter().map(|(path, meta)| (path.as_str(), meta.len()));
        let extent = Extent::of(found.clone(), files, self.bounds);
        if extent != Extent::All {
            self.remarks.too_much(measure(found), self.bounds, extent);
            self.listing.files.retain(|path, _| extent.has(path, files));
            self.listing.links.retain(|path, _| extent.has(path, files));
        }
        extent == Extent::All
    }

    /// Adds the seeds. They have limits of their own: without them an agent may not work at all.
    fn seeds(&mut self, seeds: &[String]) {
        // The seeds are listed separately, so that the context does not count towards their limit.
        let context = std::mem::take(&mut self.listing);
        for seed in seeds {
            let path = seed.trim_end_matches('/');
            if path.is_empty() || !is_plain(path) || is_never_copied(path) {
                self.remarks.say(format!("`{seed}` is not copied: it is no file or folder of the project"));
                continue;
            }
            let before = self.listing.files.clone();
            if self.is_real(path) {
                self.walk(path, Walk::Seed);
            } else {
                self.add(path);
            }
            let found = self.listing.files.iter().map(|(path, meta)| (path.as_str(), meta.len()));
            let Bounds { files: count, bytes } = measure(found);
            // A seed that exceeds the limit is dropped as a whole: a part of it would be useless.
            if count > self.bounds.files || bytes > self.bounds.bytes {
                self.listing.files = before;
                self.remarks
                    .say(format!("`{seed}` is not copied: it is too much beside what else agents need"));
            }
        }
        self.listing.files.extend(context.files);
        self.listing.links.extend(context.links);
    }
}

/// Whether a link at `relative_path` stays inside the project, following links on the way. `read_link_target` resolves them.
pub(super) fn leads_inside(path: &str, target: &str, link: &dyn Fn(&str) -> Option<String>) -> bool {
    const MOST_LINKS: usize = 40;
    let mut here: Vec<String> =
        folder(path).split('/').filter(|part| !part.is_empty()).map(String::from).collect();
    // A link below a linked directory is not at the place its path suggests.
    if (1..=here.len()).any(|depth| link(&here[..depth].join("/")).is_some()) {
        return false;
    }
    let mut rest: Vec<String> = Vec::new();
    let mut next = Some(target.to_string());
    for _ in 0..MOST_LINKS {
        let Some(target) = next.take() else { return true };
        if target.starts_with('/') {
            return false;
        }
        // Components are kept in reverse order, so that the next one is at the end.
        rest.extend(target.split('/').rev().map(String::from));
        while let Some(part) = rest.pop() {
            match part.as_str() {
                "" | "." => {}
                ".." => {
                    if here.pop().is_none() {
                        return false;
                    }
                }
                name if is_never_copied(name) => return false,
                _ => {
                    here.push(part);
                    next = link(&here.join("/"));
                    // The target of this link replaces the component, and the rest of the path follows it.
                    if next.is_some() {
                        here.pop();
                        break;
                    }
                }
            }
        }
    }
    // More links than the kernel itself would follow: this is a loop.
    false
}
