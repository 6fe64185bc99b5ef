//! Which uses of a tool an agent is refused: writing outside the project or the subject, touching what is Tribunal's own, and
//! commands whose harm nobody can take back.
//!
//! A guard reads words; it looks at no file and follows no link. It keeps honest agents from slips. What it does not understand it
//! allows: a script, a program it does not know, a folder that came out of a variable. So nothing rests on it alone, and what it
//! protects is checked again from outside.
//!
//! Which field of which client's tool is a path is known in `agents`; what is done with a refusal, in the binary's hook. The crate
//! takes values and gives values: it is `no_std` and depends on nothing, so it cannot look anything up.
#![no_std]

extern crate alloc;

mod destructive;
mod git;
mod places;
mod run;
mod scene;
mod shell;
mod targets;
mod watch;

use alloc::{
    format,
    string::{String, ToString},
};

use places::{Map, Path};

/// Where an agent may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// Anywhere.
    Off,
    #[default]
    Project,
    /// Only in what is under review; without a review, in the project.
    Subject,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardPolicy {
    pub paths: Bounds,
    pub own_files: bool,
    pub destructive: bool,
}

impl Default for GuardPolicy {
    fn default() -> Self {
        GuardPolicy { paths: Bounds::default(), own_files: true, destructive: true }
    }
}

/// What an agent is about to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse<'a> {
    /// As the client gave them.
    pub paths: &'a [String],
    /// For a shell.
    pub command: Option<&'a str>,
    /// The tool changes the files it names.
    pub writes: bool,
}

/// Where it would happen. Folders are absolute and real (without links); what is not known is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ground<'a> {
    pub root: &'a str,
    pub cwd: &'a str,
    pub home: &'a str,
    /// What is under review: files, and folders with `/` at the end, relative to the root or absolute.
    pub subject: &'a [String],
    /// It is a code change: files may be made beside those it has.
    pub change: bool,
    /// What is Tribunal's, in the same form.
    pub own: &'a [String],
    /// Folders in which everyone may write, such as the system's temporary one. One that the project is in does not count.
    pub scratch: &'a [String],
    /// A review or a loop waits for this session.
    pub session_bound: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    OutsideProject,
    OutsideSubject,
    OwnFiles,
    OwnCommands,
    Destructive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub rule: Rule,
    /// For the agent: what was refused, why, and what to do instead.
    pub reason: String,
}

impl Denied {
    fn new(rule: Rule, what: &str, why: &str, instead: &str) -> Denied {
        Denied { rule, reason: format!("Refused: {what}. Why: {why}. {instead}.") }
    }
}

pub fn check(policy: GuardPolicy, ground: &Ground<'_>, tool: &ToolUse<'_>) -> Option<Denied> {
    let map = Map::of(ground);
    let mut watch = watch::Watch::new(policy, &map, ground.session_bound);
    if tool.writes {
        let mut paths = tool.paths.iter().filter_map(|path| given(path, &map));
        if let Some(denied) = paths.find_map(|path| watch.written(&path, false, true)) {
            return Some(denied);
        }
    }
    tool.command.and_then(|command| watch.command(command))
}

/// A path as a client gives it: no shell has seen it, but a home is often meant.
fn given(path: &str, map: &Map) -> Option<Path> {
    let below = ["~", "$HOME", "${HOME}"]
        .iter()
        .find_map(|home| path.strip_prefix(home).filter(|below| below.is_empty() || below.starts_with('/')));
    match below {
        Some(below) => {
            let mut home = map.home.clone()?;
            home = Path::of(below.trim_start_matches('/'), Some(&home))?;
            Some(home)
        }
        None => Path::of(path, map.cwd.as_ref()),
    }
}

/// Long words are shown by their beginning.
fn clipped(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}
