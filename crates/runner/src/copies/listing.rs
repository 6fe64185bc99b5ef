//! What of the person's work tree goes into a copy: the subject, what git would track (every ordinary file, where there is no
//! git), what agents need although it is ignored. Nothing is copied here.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, Metadata},
    path::Path,
};

use super::{NEVER, Source, git, is_never_copied, remarks::Remarks};
use crate::subject::is_plain;

/// More than this is not copied for every task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub files: usize,
    pub bytes: u64,
}

/// How much of a project a copy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    All,
    /// The folders of the subject's files, without those below them.
    Folders,
    Files,
}

impl Extent {
    /// The widest that keeps to the bounds.
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

/// How many files, and how large they are together.
pub(super) fn measure<'a>(found: impl Iterator<Item = (&'a str, u64)>) -> Bounds {
    let nothing = Bounds { files: 0, bytes: 0 };
    found.fold(nothing, |sum, (_, size)| Bounds { files: sum.files + 1, bytes: sum.bytes + size })
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// What was found, by relative path.
#[derive(Default)]
pub(super) struct Listing {
    pub files: BTreeMap<String, Metadata>,
    /// Links that stay inside, with where they lead.
    pub links: BTreeMap<String, String>,
    /// Whether git listed them, and all of them are there.
    pub whole: bool,
}

/// Looks at the project, link by link and folder by folder.
struct Look<'a> {
    root: &'a Path,
    bounds: Bounds,
    listing: Listing,
    /// Whether a folder and all above it are folders and no links.
    real: HashMap<String, bool>,
    remarks: &'a mut Remarks,
}

pub(super) fn look(source: &Source<'_>, bounds: Bounds, remarks: &mut Remarks) -> Listing {
    let mut look = Look::new(source.root, bounds, remarks);
    let by_git = match git::list(source.root) {
        Ok(listed) => {
            look.tracked(&listed);
            true
        }
        Err(why) => {
            if source.root.join(".git").exists() {
                look.remarks.say(format!("git cannot say what is ignored, so all files are copied: {why}"));
            }
            look.walk("", Walk::Context);
            if !look.remarks.counted_on {
                look.siblings(source.files);
            }
            false
        }
    };
    // Before the bounds: one that has been asked for is there.
    for file in source.files {
        look.add(file);
    }
    let whole = look.narrow(source.files);
    look.seeds(source.seeds);
    look.listing.whole = by_git && whole;
    look.listing
}

/// What agents need of a project although it is ignored, for a copy of something that git stored.
pub(super) fn look_at_seeds(source: &Source<'_>, bounds: Bounds, remarks: &mut Remarks) -> Listing {
    let mut look = Look::new(source.root, bounds, remarks);
    look.seeds(source.seeds);
    look.listing
}

/// What a walk leaves out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// What tools leave behind.
    Context,
    /// Other repositories, such as work trees that agents made there.
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
                // One that is not checked out is an empty folder.
                let there = self.is_real(path) && self.root.join(path).join(".git").exists();
                if there {
                    self.walk(path, Walk::Context);
                }
            } else if let Some(repository) = path.strip_suffix('/') {
                self.remarks.repositories.push(repository.to_string());
            } else if entry.tracked || !parts().any(|part| NEVER.contains(&part)) {
                self.add(path);
            }
        }
    }

    /// An ordinary file, or a link that stays inside; nothing else.
    fn add(&mut self, path: &str) {
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

    /// All below a folder, until there is more than the bounds allow.
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

    /// What is in the folders of the subject's files, which a walk that was broken off may not have come to.
    fn siblings(&mut self, files: &[String]) {
        for folder in files.iter().map(|file| folder(file)) {
            for item in fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten() {
                if let Ok(name) = item.file_name().into_string() {
                    self.add(&if folder.is_empty() { name } else { format!("{folder}/{name}") });
                }
            }
        }
    }

    /// Takes away what is too much. True: nothing was.
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

    /// They have bounds of their own: without them an agent may not work at all.
    fn seeds(&mut self, seeds: &[String]) {
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

/// Whether a link at `path` leads to a place inside, links on the way followed. `link` says where another one leads.
pub(super) fn leads_inside(path: &str, target: &str, link: &dyn Fn(&str) -> Option<String>) -> bool {
    const MOST_LINKS: usize = 40;
    let mut here: Vec<String> =
        folder(path).split('/').filter(|part| !part.is_empty()).map(String::from).collect();
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
                    if next.is_some() {
                        here.pop();
                        break;
                    }
                }
            }
        }
    }
    false
}
