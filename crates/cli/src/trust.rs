//! Which commands of a project may run here: the user is asked once for each, by content, and the answer is kept outside the
//! project.
//!
//! A cloned project, or a journal that came with it, can name any command. None of them runs before the user agrees. What the
//! user set in a file of their own, in variables or flags needs no consent; `replay` agents run only our own player, and a
//! client's own program on the path is the user's. What gives a client more rights (other tools, the project's own settings
//! for it, no permission checks) needs the same consent. A command that cannot be shown in full, because a part of it looks
//! like a secret, cannot be trusted. Whether a command is wise is not checked, and a trusted command may call a script that
//! changes later: the consent is to the command line, not to what it calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead, Write, stderr, stdin},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tribunal_core::{ids::Hash, settings::Settings};
use tribunal_report::escaped;
use tribunal_runner::mask::Masker;

use crate::{
    complaint::{Complaint, ENVIRONMENT},
    context::{Context, quoted},
    demo_project::bundled_items,
    settings::{Given, of_the_person, person_s_items},
    trust_item::Item,
};

/// The items that the user trusts, by project.
#[derive(Debug)]
pub(crate) struct Book {
    path: PathBuf,
    pages: Pages,
}

/// The content of the file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    schema: String,
    /// Hashes of items by the project's real path. The commands themselves are not stored, because they could contain a secret.
    projects: BTreeMap<String, BTreeSet<Hash>>,
}

const SCHEMA: &str = "tribunal.trust-book/1";

impl Book {
    pub fn open(context: &Context) -> Result<Book, Complaint> {
        Book::read(context.state_home()?.join("trust.json"))
    }

    fn read(path: PathBuf) -> Result<Book, Complaint> {
        let pages = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|cause| cause.to_string()),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                Ok(Pages { schema: SCHEMA.into(), projects: BTreeMap::new() })
            }
            Err(cause) => Err(cause.to_string()),
        };
        // An unknown format is not overwritten: a newer version may have written it.
        let pages = pages.and_then(|pages| match pages.schema.as_str() {
            SCHEMA => Ok(pages),
            other => Err(format!("it is of another format, {other}")),
        });
        match pages {
            Ok(pages) => Ok(Book { path, pages }),
            // An unreadable file is never treated as an empty one, or the user would be asked to trust everything again.
            Err(cause) => Err(Complaint::new(ENVIRONMENT, format!("{} cannot be read: {cause}", path.display()))
                .why("It says which commands you trusted. Without it none of a project's commands runs; nothing was started.")
                .todo(format!("make it readable, or remove it and be asked again: rm {}", quoted(&path.to_string_lossy())))),
        }
    }

    /// Returns whether an item is trusted in this project.
    pub fn trusts(&self, root: &Path, item: &Item) -> bool {
        self.pages.projects.get(&key(root)).is_some_and(|page| page.contains(&item.hash()))
    }

    /// Counts the trusted items of a project, even those that are no longer in its settings.
    pub fn count(&self, root: &Path) -> usize {
        self.pages.projects.get(&key(root)).map_or(0, BTreeSet::len)
    }

    /// Trusts items in a project.
    pub fn add<'a>(
        &mut self,
        root: &Path,
        items: impl IntoIterator<Item = &'a Item>,
    ) -> Result<(), Complaint> {
        let hashes = items.into_iter().map(Item::hash);
        self.change(|pages| pages.projects.entry(key(root)).or_default().extend(hashes))
    }

    /// Forgets everything about a project and returns how many items were trusted.
    pub fn forget(&mut self, root: &Path) -> Result<usize, Complaint> {
        let mut gone = 0;
        self.change(|pages| gone = pages.projects.remove(&key(root)).map_or(0, |page| page.len()))?;
        Ok(gone)
    }

    /// Reads the file again, changes it and writes it under a lock, so that changes of another process are kept.
    fn change(&mut self, how: impl FnOnce(&mut Pages)) -> Result<(), Complaint> {
        let _alone = self.lock().map_err(|cause| self.unwritable(&cause))?;
        self.pages = Book::read(self.path.clone())?.pages;
        how(&mut self.pages);
        self.write().map_err(|cause| self.unwritable(&cause))
    }

    /// Takes the lock, which is held until the file is dropped. The trust file itself cannot be locked, because it is replaced.
    fn lock(&self) -> io::Result<fs::File> {
        let path = self.path.with_extension("lock");
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
        let open =
            fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        let file = open?;
        file.lock()?;
        Ok(file)
    }

    fn unwritable(&self, cause: &io::Error) -> Complaint {
        Complaint::new(ENVIRONMENT, format!("{} cannot be written: {cause}", self.path.display()))
            .why("What you trusted could not be kept. Nothing was started.")
            .todo("make that folder writable, or name another: export XDG_STATE_HOME=/path/to/a/folder")
    }

    /// Replaces the file atomically.
    fn write(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        // Temporary files are created with access for their owner only.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, &self.pages)?;
        writeln!(file)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|failed| failed.error)?;
        // The rename itself has to be durable, too.
        fs::File::open(folder)?.sync_all()
    }
}

/// The key of a project: its real path. A path that is not UTF-8 is encoded, since two projects must never share a key.
fn key(root: &Path) -> String {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    match real.to_str() {
        Some(text) => text.to_string(),
        None => real
            .as_os_str()
            .as_bytes()
            .iter()
            .fold("bytes:".to_string(), |key, byte| format!("{key}{byte:02x}")),
    }
}

/// Fails unless all items are trusted here. The user is asked once, if that is possible.
pub(crate) fn require(context: &Context, root: &Path, items: &[Item]) -> Result<(), Complaint> {
    let bundled = bundled_items();
    let mut unknown: Vec<&Item> = Vec::new();
    // The store is opened only if there is something to look up; many projects need no trust at all.
    for item in items {
        if !bundled.contains(item) && !unknown.contains(&item) {
            unknown.push(item);
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let mut book = Book::open(context)?;
    unknown.retain(|item| !book.trusts(root, item));
    if unknown.is_empty() {
        return Ok(());
    }
    let masker = context.masker();
    // The user must not agree to something that is not visible, so this comes before the question.
    if let Some(hidden) = unknown.iter().find(|item| item.hides_something(&masker)) {
        return Err(secret_in(hidden, &masker));
    }
    if !context.can_ask() {
        return Err(refusal(context, &unknown, &masker));
    }
    if ask(&unknown, &masker)? {
        return book.add(root, unknown);
    }
    Err(Complaint::usage("the project's commands are not trusted")
        .why("Nothing was started.")
        .todo(format!("look at them again: {} trust --list", context.progress.program)))
}

/// Trusts what the user typed on the command line: the run is pinned to it, and resuming the run must not ask again. What is
/// in the user's own file or variables is recognised there and not stored.
pub(crate) fn remember(context: &Context, root: &Path, settings: &Settings) {
    let typed = || -> Result<(), Complaint> {
        let mut items = Item::of(settings);
        let bundled = bundled_items();
        let own = person_s_items(&of_the_person(&Given::from_environment())?);
        items.retain(|item| !bundled.contains(item) && !own.contains(&item.hash()));
        if items.is_empty() {
            return Ok(());
        }
        let mut book = Book::open(context)?;
        let masker = context.masker();
        // A command with a secret is not stored; resuming asks for it, and the user learns where it belongs.
        items.retain(|item| !book.trusts(root, item) && !item.hides_something(&masker));
        if items.is_empty() { Ok(()) } else { book.add(root, &items) }
    };
    // Without a place to store it the question comes when the run is resumed; nothing is lost.
    let _ = typed();
}

/// The error for an item that is shown with a mask in it: it could be any command.
pub(crate) fn secret_in(item: &Item, masker: &Masker) -> Complaint {
    Complaint::usage(format!("the settings contain what looks like a secret: {}", item.shown(masker)))
        .why("What cannot be shown cannot be trusted. Nothing was started.")
        .todo("put it into an environment variable that the agent or the check reads itself")
}

/// The error for items that the user has not trusted.
fn refusal(context: &Context, unknown: &[&Item], masker: &Masker) -> Complaint {
    let (what, it) = match unknown.len() {
        1 => ("this project would run a command that you have not trusted".to_string(), "It"),
        several => (format!("this project would run {several} commands that you have not trusted"), "They"),
    };
    let lines: String = unknown.iter().map(|item| format!("  {}\n", item.shown(masker))).collect();
    Complaint::usage(what)
        .why(format!(
            "{lines}{it} came with the project and would run with your rights. Nothing was started."
        ))
        .todo(format!("if that is well: {} trust{}", context.progress.program, steps(unknown)))
}

/// The arguments that name files of hooks: they are not settings, so `trust` has to be told about them.
fn steps(unknown: &[&Item]) -> String {
    let mut steps = String::new();
    for item in unknown {
        if let Item::Hook { name, .. } = item {
            let step = format!(" --step {}", quoted(&escaped(name)));
            if !steps.contains(&step) {
                steps.push_str(&step);
            }
        }
    }
    steps
}

/// Shows the items and asks whether they may run. Call it only if the user can answer.
pub(crate) fn ask(items: &[&Item], masker: &Masker) -> Result<bool, Complaint> {
    let mut err = stderr().lock();
    writeln!(err, "[?] This project came with commands that would run with your rights:")?;
    for item in items {
        writeln!(err, "      {}", item.shown(masker))?;
    }
    write!(err, "    [y] run them here from now on, [N] not: ")?;
    err.flush()?;
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    // Anything but a clear yes is a no.
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn agent(argv: &[&str]) -> Item {
        Item::Agent { name: "mine".into(), argv: argv.iter().map(|word| word.to_string()).collect() }
    }

    #[test]
    fn trust_is_for_one_command_in_one_project() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tribunal/trust.json");
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        let mut book = Book::read(path.clone()).unwrap();
        book.add(&here, [&agent(&["a", "b"])]).unwrap();
        let book = Book::read(path.clone()).unwrap();
        assert!(book.trusts(&here, &agent(&["a", "b"])));
        assert!(!book.trusts(&there, &agent(&["a", "b"])));
        assert!(!book.trusts(&here, &agent(&["ab"])));
        assert!(!book.trusts(&here, &agent(&["a", "b", "c"])));
        assert!(!book.trusts(&here, &Item::Verify { command: "a b".into() }));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn two_who_write_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tribunal/trust.json");
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        let [mut one, mut other, mut third] = [0; 3].map(|_| Book::read(path.clone()).unwrap());
        one.add(&here, [&agent(&["a"])]).unwrap();
        other.add(&there, [&agent(&["b"])]).unwrap();
        assert_eq!(third.forget(&here).unwrap(), 1);
        let book = Book::read(path).unwrap();
        assert_eq!((book.count(&here), book.count(&there)), (0, 1));
    }

    #[test]
    fn paths_that_are_no_text_are_told_apart() {
        let named = |bytes: &'static [u8]| key(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(named(b"/nowhere/\xc3\xa9"), "/nowhere/é");
        assert_eq!(named(b"/n\xff"), "bytes:2f6eff");
        assert_ne!(named(b"/nowhere/\xff"), named(b"/nowhere/\xfe"));
    }

    #[test]
    fn an_unreadable_book_is_a_complaint_and_not_an_empty_book() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.json");
        for text in ["{", "{\"schema\": \"other/1\", \"projects\": {}}", "[]"] {
            fs::write(&path, text).unwrap();
            let complaint = Book::read(path.clone()).unwrap_err();
            assert_eq!(complaint.exit, ENVIRONMENT);
            assert!(complaint.what.contains("cannot be read"), "{complaint}");
        }
    }
}
