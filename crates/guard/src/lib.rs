//! Decides which uses of a tool an agent is refused: writing outside the project or the subject, touching files that belong to
//! Tribunal, and commands whose harm cannot be undone.
//!
//! The guard only reads text; it looks at no file and follows no link. It keeps honest agents from slips. It allows what it
//! does not understand: a script, an unknown program, a directory that comes out of a variable. So no result of a review may
//! rest on the guard.
//!
//! The `agents` crate knows which field of which client's tool is a path; the hook of the binary decides what to do with a
//! refusal. This crate takes values and gives values: it is `no_std` and depends on nothing, so it cannot look anything up.
#![no_std]

extern crate alloc;

mod checker;
mod destructive;
mod git;
mod invocation;
mod paths;
mod shell;
mod shell_state;
mod write_targets;

use alloc::{
    format,
    string::{String, ToString},
};

use paths::{LexicalPath, PathBoundaries};

/// The area in which an agent may write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteBounds {
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
    pub paths: WriteBounds,
    pub own_files: bool,
    pub destructive: bool,
}

impl Default for GuardPolicy {
    fn default() -> Self {
        GuardPolicy { paths: WriteBounds::default(), own_files: true, destructive: true }
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
pub struct GuardContext<'a> {
    pub project_root: &'a str,
    pub working_dir: &'a str,
    pub home_dir: &'a str,
    /// The paths under review: files, and directories with a trailing `/`, relative to the root or absolute.
    pub subject_paths: &'a [String],
    /// Whether the review is about a code change: then the agent may create files beside those of the change.
    pub is_code_change: bool,
    /// The paths that belong to Tribunal, in the same form.
    pub own_paths: &'a [String],
    /// Directories in which every process may write, such as the system's temporary one. A directory that contains the project
    /// does not count.
    pub scratch_dirs: &'a [String],
    /// Whether a review or a loop waits for this session.
    pub session_bound: bool,
}

/// The rule that a tool use breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardRule {
    OutsideProject,
    OutsideSubject,
    OwnFiles,
    OwnCommands,
    Destructive,
}

/// A refused tool use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolDenial {
    pub rule: GuardRule,
    /// A text for the agent: what was refused, why, and what to do instead.
    pub reason: String,
}

impl ToolDenial {
    fn new(rule: GuardRule, refused_action: &str, explanation: &str, alternative: &str) -> ToolDenial {
        ToolDenial { rule, reason: format!("Refused: {refused_action}. Reason: {explanation}. {alternative}.") }
    }
}

/// Checks one tool use; `None` means that it is allowed.
pub fn check_tool_use(policy: GuardPolicy, context: &GuardContext<'_>, tool_use: &ToolUse<'_>) -> Option<ToolDenial> {
    // Paths and command line are checked independently: a client may send both, and either alone can be a reason to refuse.
    let boundaries = PathBoundaries::from_context(context);
    let mut command_checker = checker::CommandChecker::new(policy, &boundaries, context.session_bound);
    if tool_use.writes {
        let mut written_paths =
            tool_use.paths.iter().filter_map(|given_path| resolve_given_path(given_path, &boundaries));
        if let Some(denial) =
            written_paths.find_map(|written_path| command_checker.check_write(&written_path, false, true))
        {
            return Some(denial);
        }
    }
    tool_use.command.and_then(|command| command_checker.check_command(command))
}

/// Resolves a path as a client gives it: no shell has expanded it, but agents often spell the home directory as a shell would.
fn resolve_given_path(given_path: &str, boundaries: &PathBoundaries) -> Option<LexicalPath> {
    let below_home = ["~", "$HOME", "${HOME}"].iter().find_map(|home_spelling| {
        given_path.strip_prefix(home_spelling).filter(|below_home| below_home.is_empty() || below_home.starts_with('/'))
    });
    match below_home {
        Some(below_home) => {
            // Without a known home directory the path cannot be placed, and such paths are allowed.
            let mut resolved_path = boundaries.home_dir.clone()?;
            resolved_path = LexicalPath::resolve(below_home.trim_start_matches('/'), Some(&resolved_path))?;
            Some(resolved_path)
        }
        None => LexicalPath::resolve(given_path, boundaries.working_dir.as_ref()),
    }
}

/// Shortens a long text to its beginning, because refusals quote text that agents control.
fn clip_text(full_text: &str) -> String {
    const MAX_CHARS: usize = 120;
    match full_text.char_indices().nth(MAX_CHARS) {
        Some((end_offset, _)) => format!("{}…", full_text.get(..end_offset).unwrap_or_default()),
        None => full_text.to_string(),
    }
}
