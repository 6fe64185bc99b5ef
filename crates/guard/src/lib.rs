//! Decides which uses of a tool an agent is refused: writing outside the project or the subject, touching files that belong to
//! Tribunal, and commands whose harm cannot be undone.
//!
//! The guard only reads text; it looks at no file and follows no link. It keeps honest agents from slips. It allows what it
//! does not understand: a script, an unknown program, a directory that comes out of a variable. So nothing rests on the guard
//! alone, and everything it protects is checked again from outside.
//!
//! The `agents` crate knows which field of which client's tool is a path; the hook of the binary decides what to do with a
//! refusal. This crate takes values and gives values: it is `no_std` and depends on nothing, so it cannot look anything up.
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

/// The area in which an agent may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// The agent may write anywhere.
    Off,
    #[default]
    Project,
    /// The agent may write only in the files under review; without a review, in the project.
    Subject,
}

/// Which checks are on, as the user's settings say.
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

/// One use of a tool that an agent is about to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolUse<'a> {
    /// The paths that the tool names, as the client wrote them.
    pub paths: &'a [String],
    /// The command line, if the tool is a shell.
    pub command: Option<&'a str>,
    /// Whether the tool changes the files it names.
    pub writes: bool,
}

/// The surroundings in which the tool would run. Directories are absolute and real (without links); a value that is not known
/// is empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ground<'a> {
    pub root: &'a str,
    pub cwd: &'a str,
    pub home: &'a str,
    /// The paths under review: files, and directories with a trailing `/`, relative to the root or absolute.
    pub subject: &'a [String],
    /// Whether the review is about a code change: then the agent may create files beside those of the change.
    pub change: bool,
    /// The paths that belong to Tribunal, in the same form.
    pub own: &'a [String],
    /// Directories in which every process may write, such as the system's temporary one. A directory that contains the project
    /// does not count.
    pub scratch: &'a [String],
    /// Whether a review or a loop waits for this session.
    pub session_bound: bool,
}

/// The rule that a tool use breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    OutsideProject,
    OutsideSubject,
    OwnFiles,
    OwnCommands,
    Destructive,
}

/// A refused tool use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    pub rule: Rule,
    /// A text for the agent: what was refused, why, and what to do instead.
    pub reason: String,
}

impl Denied {
    fn new(rule: Rule, what: &str, why: &str, instead: &str) -> Denied {
        Denied { rule, reason: format!("Refused: {what}. Why: {why}. {instead}.") }
    }
}

/// Checks one tool use; `None` means that it is allowed.
pub fn check(policy: GuardPolicy, ground: &Ground<'_>, tool: &ToolUse<'_>) -> Option<Denied> {
    // Paths and command line are checked independently: a client may send both, and either alone can be a reason to refuse.
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

/// Resolves a path as a client gives it: no shell has expanded it, but agents often spell the home directory as a shell would.
fn given(path: &str, map: &Map) -> Option<Path> {
    let below = ["~", "$HOME", "${HOME}"]
        .iter()
        .find_map(|home| path.strip_prefix(home).filter(|below| below.is_empty() || below.starts_with('/')));
    match below {
        Some(below) => {
            // Without a known home directory the path cannot be placed, and such paths are allowed.
            let mut home = map.home.clone()?;
            home = Path::of(below.trim_start_matches('/'), Some(&home))?;
            Some(home)
        }
        None => Path::of(path, map.cwd.as_ref()),
    }
}

/// Shortens a long text to its beginning, because refusals quote text that agents control.
fn clipped(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}
