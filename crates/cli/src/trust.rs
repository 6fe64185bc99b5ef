//! Which commands of a project may run here: asked once for each, by content, and kept outside the project.
//!
//! A cloned project, or a journal that came with it, can name any command. Until the person who runs it said yes, none of
//! them runs. What a person set in their own file, variables or flags needs no consent; `replay` agents run only our own
//! player, and a client's own program on the path is the person's. What lets a client do more than by itself (other tools,
//! the project's own settings for it, no permission checks) needs the same yes. A command that cannot be shown as it is,
//! because a part of it looks like a secret, cannot be trusted. Whether a command is wise is not looked at, and a trusted
//! command may call a script that changes: the consent is to the command line, not to what it calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, BufRead, Write, stderr, stdin},
    os::unix::{ffi::OsStrExt, fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tribunal_bmad::hooks::{Hook, Hooks};
use tribunal_core::{
    client::{ClientSpec, Inherit},
    ids::Hash,
    settings::{DriverSpec, Settings},
};
use tribunal_report::escaped;
use tribunal_runner::mask::Masker;

use crate::{
    complaint::{Complaint, ENVIRONMENT},
    context::{Context, quoted},
    settings::{of_the_person, person_s_items},
};

/// Something in the settings that would run, or that lets a client do more than by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Agent {
        name: String,
        argv: Vec<String>,
    },
    /// A program in the place of a client's own.
    Client {
        name: String,
        program: String,
    },
    /// An MCP server.
    Server {
        name: String,
        argv: Vec<String>,
    },
    Licence {
        name: String,
        what: Licence,
    },
    Verify {
        command: String,
    },
    /// What a step's or an agent's file wants run, named by that file.
    Hook {
        name: String,
        command: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Licence {
    Bypass,
    Tool(String),
    ProjectSettings,
}

impl Item {
    /// All of a run's settings, wherever they came from.
    pub fn of(settings: &Settings) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        for agent in settings.agents.iter().chain(&settings.reserves) {
            let name = agent.name.as_str();
            let of_agent = match &agent.driver {
                DriverSpec::Command { argv } => {
                    vec![Item::Agent { name: name.to_string(), argv: argv.clone() }]
                }
                DriverSpec::Replay { .. } => Vec::new(),
                DriverSpec::Client(client) => Item::of_client(name, client),
            };
            for item in of_agent {
                if !items.contains(&item) {
                    items.push(item);
                }
            }
        }
        items.extend(settings.verify.iter().map(|command| Item::Verify { command: command.clone() }));
        items
    }

    /// What a file's front matter wants run; the same command at another moment is the same command.
    pub fn of_hooks(file: &str, hooks: &Hooks) -> Vec<Item> {
        let item = |hook: &Hook| Item::Hook { name: file.to_string(), command: hook.command.clone() };
        let mut items: Vec<Item> = Vec::new();
        for item in hooks.all.iter().map(item) {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        items
    }

    fn of_client(name: &str, client: &ClientSpec) -> Vec<Item> {
        let licence = |what| Item::Licence { name: name.to_string(), what };
        let program = client.program.iter();
        let program =
            program.map(|program| Item::Client { name: name.to_string(), program: program.clone() });
        let servers = client.servers.iter();
        let servers =
            servers.map(|server| Item::Server { name: server.name.clone(), argv: server.argv.clone() });
        let bypass = client.bypass.then(|| licence(Licence::Bypass));
        let project = (client.inherit == Inherit::Project).then(|| licence(Licence::ProjectSettings));
        let tools = client.allow.iter().map(|tool| licence(Licence::Tool(tool.clone())));
        program.chain(bypass).chain(project).chain(tools).chain(servers).collect()
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Item::Agent { .. } => "agent",
            Item::Client { .. } => "client",
            Item::Server { .. } => "server",
            Item::Licence { .. } => "licence",
            Item::Verify { .. } => "check",
            Item::Hook { .. } => "hook",
        }
    }

    /// The agent, the server or the file it belongs to.
    pub fn name(&self) -> Option<&str> {
        match self {
            Item::Agent { name, .. }
            | Item::Client { name, .. }
            | Item::Server { name, .. }
            | Item::Licence { name, .. }
            | Item::Hook { name, .. } => Some(name),
            Item::Verify { .. } => None,
        }
    }

    /// What would run, as one line without anything that a terminal would obey.
    pub fn command(&self) -> String {
        let line = match self {
            Item::Agent { argv, .. } | Item::Server { argv, .. } => {
                argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
            Item::Client { program, .. } => quoted(program),
            Item::Licence { what, .. } => what.words(),
            Item::Verify { command } | Item::Hook { command, .. } => command.clone(),
        };
        escaped(&line)
    }

    /// The kind, whose it is and the command, without secrets.
    pub fn shown(&self, masker: &Masker) -> String {
        let command = self.command();
        let command = masker.mask(&command);
        // Masked apart: an agent that is called `token` must not make a secret of its command.
        let name = |name: &str| masker.mask(&escaped(name)).into_owned();
        match self {
            Item::Agent { name: agent, .. } => format!("agent `{}`: {command}", name(agent)),
            Item::Client { name: agent, .. } => format!("agent `{}`, its client: {command}", name(agent)),
            Item::Server { name: server, .. } => format!("MCP server `{}`: {command}", name(server)),
            Item::Licence { name: agent, .. } => format!("agent `{}` may {command}", name(agent)),
            Item::Verify { .. } => format!("check: {command}"),
            Item::Hook { name: file, .. } => format!("hook of `{}`: {command}", name(file)),
        }
    }

    /// Whether what is shown is not what runs. Nobody can say yes to that.
    pub fn hides_something(&self, masker: &Masker) -> bool {
        let command = self.command();
        masker.mask(&command) != command
    }

    /// Of the kind and the content. A name is no part of it where what runs is the command.
    pub fn hash(&self) -> Hash {
        let words;
        let parts: Vec<&str> = match self {
            Item::Agent { argv, .. } | Item::Server { argv, .. } => argv.iter().map(String::as_str).collect(),
            Item::Client { program, .. } => vec![program],
            Item::Licence { name, what } => {
                words = what.words();
                vec![name, &words]
            }
            Item::Verify { command } | Item::Hook { command, .. } => vec![command],
        };
        let mut bytes = self.kind().as_bytes().to_vec();
        for part in parts {
            // With its length, so that no two lists of words look alike.
            bytes.extend((part.len() as u64).to_le_bytes());
            bytes.extend(part.as_bytes());
        }
        Hash::of(&bytes)
    }
}

impl Licence {
    /// What an agent may do with it.
    fn words(&self) -> String {
        match self {
            Licence::Bypass => "work without its own permission checks".to_string(),
            Licence::Tool(tool) => format!("use {tool}"),
            Licence::ProjectSettings => "take the project's own settings for it".to_string(),
        }
    }
}

/// What a person trusted, by project.
#[derive(Debug)]
pub(crate) struct Book {
    path: PathBuf,
    pages: Pages,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    schema: String,
    /// Hashes of items by the project's real path. The commands themselves are not kept: they could hold a secret.
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
        let pages = pages.and_then(|pages| match pages.schema.as_str() {
            SCHEMA => Ok(pages),
            other => Err(format!("it is of another format, {other}")),
        });
        match pages {
            Ok(pages) => Ok(Book { path, pages }),
            Err(cause) => Err(Complaint::new(ENVIRONMENT, format!("{} cannot be read: {cause}", path.display()))
                .why("It says which commands you trusted. Without it none of a project's commands runs; nothing was started.")
                .todo(format!("make it readable, or remove it and be asked again: rm {}", quoted(&path.to_string_lossy())))),
        }
    }

    pub fn trusts(&self, root: &Path, item: &Item) -> bool {
        self.pages.projects.get(&key(root)).is_some_and(|page| page.contains(&item.hash()))
    }

    /// How many items of this project were trusted, whether they are still in its settings or not.
    pub fn count(&self, root: &Path) -> usize {
        self.pages.projects.get(&key(root)).map_or(0, BTreeSet::len)
    }

    pub fn add<'a>(
        &mut self,
        root: &Path,
        items: impl IntoIterator<Item = &'a Item>,
    ) -> Result<(), Complaint> {
        let hashes = items.into_iter().map(Item::hash);
        self.change(|pages| pages.projects.entry(key(root)).or_default().extend(hashes))
    }

    pub fn forget(&mut self, root: &Path) -> Result<usize, Complaint> {
        let mut gone = 0;
        self.change(|pages| gone = pages.projects.remove(&key(root)).map_or(0, |page| page.len()))?;
        Ok(gone)
    }

    /// Reads it once more, changes it and writes it, alone: what another Tribunal wrote meanwhile stays.
    fn change(&mut self, how: impl FnOnce(&mut Pages)) -> Result<(), Complaint> {
        let _alone = self.lock().map_err(|cause| self.unwritable(&cause))?;
        self.pages = Book::read(self.path.clone())?.pages;
        how(&mut self.pages);
        self.write().map_err(|cause| self.unwritable(&cause))
    }

    /// Held until it is dropped. The book itself cannot be locked: it is replaced with every change.
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

    fn write(&self) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)?;
        // Only the owner may read and write it: that is how such files are made.
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer_pretty(&mut file, &self.pages)?;
        writeln!(file)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|failed| failed.error)?;
        fs::File::open(folder)?.sync_all()
    }
}

/// The real path. One that is no text is told by its bytes: two of them must never be one project.
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

/// Lets a command go on only if everything in `items` is trusted here; asks once if somebody is there.
pub(crate) fn require(context: &Context, root: &Path, items: &[Item]) -> Result<(), Complaint> {
    let bundled = crate::commands::bundled_items();
    let mut unknown: Vec<&Item> = Vec::new();
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

/// What a person typed themselves is a yes, too: the run is pinned to it, and going on with the run must not ask for it.
/// What stands in their own file or variables will be known from there.
pub(crate) fn remember(context: &Context, root: &Path, settings: &Settings) {
    let typed = || -> Result<(), Complaint> {
        let mut items = Item::of(settings);
        let bundled = crate::commands::bundled_items();
        let own = person_s_items(&of_the_person(&context.wishes().given)?);
        items.retain(|item| !bundled.contains(item) && !own.contains(&item.hash()));
        if items.is_empty() {
            return Ok(());
        }
        let mut book = Book::open(context)?;
        let masker = context.masker();
        items.retain(|item| !book.trusts(root, item) && !item.hides_something(&masker));
        if items.is_empty() { Ok(()) } else { book.add(root, &items) }
    };
    // Without a place to keep it the question comes later, and nothing is lost.
    let _ = typed();
}

/// What is shown with a mask in it could be any command.
pub(crate) fn secret_in(item: &Item, masker: &Masker) -> Complaint {
    Complaint::usage(format!("the settings contain what looks like a secret: {}", item.shown(masker)))
        .why("What cannot be shown cannot be trusted. Nothing was started.")
        .todo("put it into an environment variable that the agent or the check reads itself")
}

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

/// Files are no settings: they have to be named.
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

/// Shows the items and asks whether they may run. Only where somebody can answer.
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
    fn a_hook_is_trusted_by_its_command_wherever_it_stands() {
        let text =
            |command: &str| format!("---\nhooks:\n  Stop: {command}\n  PreToolUse: [make a, make a]\n---\n");
        let of = |file: &str, command: &str| {
            Item::of_hooks(file, &tribunal_bmad::hooks::read(file, &text(command)))
        };
        let [a, lint] = of("step-1.md", "make lint").try_into().unwrap();
        let (a, lint) = if a.command() == "make a" { (a, lint) } else { (lint, a) };
        assert_eq!(lint.shown(&Masker::new([])), "hook of `step-1.md`: make lint");
        assert_eq!((lint.kind(), lint.name()), ("hook", Some("step-1.md")));
        let hashes = |items: Vec<Item>| items.iter().map(Item::hash).collect::<BTreeSet<_>>();
        assert_eq!(hashes(of("other.md", "make lint")), hashes(vec![a.clone(), lint.clone()]));
        assert!(!hashes(of("step-1.md", "make lint2")).contains(&lint.hash()));
        // A check of the same words is something else.
        assert_ne!(a.hash(), Item::Verify { command: "make a".into() }.hash());
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

    #[test]
    fn what_is_shown_is_what_runs() {
        let item = agent(&["sh", "-c", "rm -rf ~\r\u{1b}[2Kmake test \u{202e}x"]);
        let shown = "agent `mine`: sh -c 'rm -rf ~\\r\\u{1b}[2Kmake test \\u{202e}x'";
        assert_eq!(item.shown(&Masker::new([])), shown);
        for c in "\u{2028}\u{2029}\u{feff}\u{ad}\u{e0041}\u{9b}\u{a0}\u{3164}\u{fe0f}".chars() {
            let item = Item::Verify { command: format!("make{c}test") };
            let shown = item.shown(&Masker::new([]));
            assert_eq!(shown, format!("check: make{}test", c.escape_default()));
        }
    }

    #[test]
    fn a_command_with_something_masked_in_it_hides_something() {
        let masker = Masker::new([]);
        let hides = |item: Item| item.hides_something(&masker);
        assert!(hides(agent(&["sh", "-c", "eval \"$1\"", "password=", "touch here"])));
        assert!(hides(Item::Verify { command: "curl -H 'Authorization: Bearer 0123456789abcdef'".into() }));
        assert!(!hides(agent(&["sh", "-c", "make test"])));
        let token = Item::Agent { name: "token".into(), argv: vec!["sh".into(), "make".into()] };
        assert_eq!((token.shown(&masker).as_str(), hides(token)), ("agent `token`: sh make", false));
    }
}
