//! Errors as the user reads them, and the exit codes that go with them: this is the only place where errors meet codes.

use std::{fmt, io};

use serde_json::json;
use tribunal_core::ids::RunId;
use tribunal_report::{clean_block, escaped};
use tribunal_runner::{
    RunError,
    changes::{self, ChangeError, kilobytes},
    gc::GcError,
    git::GitError,
    host::HostError,
    landings::LandingsError,
    subject::{LIMIT, SubjectError},
    undo::UndoError,
};
use tribunal_store::StoreError;

/// Exit code for wrong usage or settings.
pub(crate) const USAGE: u8 = 2;
/// Exit code for a failing agent or environment.
pub(crate) const ENVIRONMENT: u8 = 5;
/// Exit code for a bug of ours.
pub(crate) const INTERNAL: u8 = 1;
/// Exit code for a run that waits for the user, and for a check with a negative result.
pub(crate) const NEGATIVE: u8 = 3;

/// What the user can do about an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    Do(String),
    /// Run `tribunal doctor`. The doctor itself leaves this step out.
    RunDoctor,
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NextStep::Do(step) => f.write_str(step),
            NextStep::RunDoctor => f.write_str("see what is missing: tribunal doctor"),
        }
    }
}

/// An error: what happened, why it matters, what to do.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub exit: u8,
    pub what: String,
    pub why: String,
    pub todo: Vec<NextStep>,
    closed_pipe: bool,
}

impl Complaint {
    pub fn new(exit: u8, what: impl Into<String>) -> Complaint {
        Complaint { exit, what: what.into(), why: String::new(), todo: Vec::new(), closed_pipe: false }
    }

    pub fn usage(what: impl Into<String>) -> Complaint {
        Complaint::new(USAGE, what)
    }

    pub fn why(mut self, why: impl Into<String>) -> Complaint {
        self.why = why.into();
        self
    }

    pub fn todo(mut self, step: impl Into<String>) -> Complaint {
        self.todo.push(NextStep::Do(step.into()));
        self
    }

    pub fn todo_doctor(mut self) -> Complaint {
        self.todo.push(NextStep::RunDoctor);
        self
    }

    pub fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }

    /// Reads the error of another Tribunal process, as written by [`UserError::to_json`].
    pub fn read(document: &serde_json::Value) -> Option<Complaint> {
        let text = |name: &str| document[name].as_str().map(String::from);
        // Steps are optional; everything else must be there.
        let steps = document["todo"].as_array().into_iter().flatten();
        Some(Complaint {
            exit: u8::try_from(document["exit"].as_u64()?).ok()?,
            what: text("error")?,
            why: text("why")?,
            todo: steps.filter_map(|step| Some(NextStep::Do(step.as_str()?.to_string()))).collect(),
            closed_pipe: false,
        })
    }

    pub fn json(&self) -> serde_json::Value {
        json!({
            "schema": "tribunal.error/1",
            "exit": self.exit,
            "error": self.what,
            "why": self.why,
            "todo": self.todo.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // File names may contain anything, even line breaks and cursor movements.
        writeln!(f, "[!] {}", escaped(&self.what))?;
        for line in clean_block(&self.why).lines() {
            writeln!(f, "    {line}")?;
        }
        for (index, step) in self.todo.iter().enumerate() {
            writeln!(f, "    {}. {}", index + 1, escaped(&step.to_string()))?;
        }
        Ok(())
    }
}

impl From<io::Error> for Complaint {
    fn from(cause: io::Error) -> Self {
        // A closed pipe is remembered by its kind, because the message is only for users.
        let closed_pipe = cause.kind() == io::ErrorKind::BrokenPipe;
        let complaint = Complaint::new(ENVIRONMENT, format!("reading or writing failed: {cause}"))
            .todo("see that the disk is not full, and where the output goes");
        Complaint { closed_pipe, ..complaint }
    }
}

impl From<serde_json::Error> for Complaint {
    fn from(cause: serde_json::Error) -> Self {
        // Writing JSON to a closed pipe fails with an error of serde; the original kind is inside.
        match cause.io_error_kind() {
            Some(kind) => io::Error::from(kind).into(),
            None => bug(cause.to_string()),
        }
    }
}

/// The error for a bug of ours.
pub(crate) fn bug(what: impl Into<String>) -> Complaint {
    Complaint::new(INTERNAL, what)
        .why("This is a bug in Tribunal. The journal is kept.")
        .todo("report it with the output of: tribunal log RUN --json")
}

impl From<SubjectError> for Complaint {
    fn from(cause: SubjectError) -> Self {
        let what = cause.to_string();
        let complaint = match &cause {
            SubjectError::Missing { .. } => {
                Complaint::usage(what).todo("check the path; it is looked up from the folder you are in")
            }
            SubjectError::Folder { path } => {
                Complaint::usage(what).todo(format!("name the files: tribunal review {path}/FILE.md …"))
            }
            SubjectError::TooLong { .. } => Complaint::usage(what)
                // The limit is shown in megabytes.
                .why(format!(
                    "Reviewers read the whole subject; beyond {} MB none does it with care.",
                    LIMIT >> 20
                ))
                .todo("split the file and review the parts"),
            SubjectError::Empty { .. } => Complaint::usage(what).todo("write something first"),
            SubjectError::Binary { .. } | SubjectError::Special { .. } => {
                Complaint::usage(what).todo("name a text file (UTF-8)")
            }
            SubjectError::Unreadable { path, .. } => {
                Complaint::new(ENVIRONMENT, what).todo(format!("look at its permissions: ls -l {path}"))
            }
            SubjectError::Outside { .. } => Complaint::usage(what)
                .todo("run Tribunal in the project that the file belongs to, or name it with -C DIR"),
        };
        // All of these are found before anything starts.
        if complaint.why.is_empty() {
            complaint.why("Nothing was started and nothing was changed.")
        } else {
            complaint
        }
    }
}

impl From<GitError> for Complaint {
    fn from(cause: GitError) -> Self {
        let what = cause.to_string();
        let complaint = match cause {
            GitError::NoGit => Complaint::new(ENVIRONMENT, what).todo("install git, or put it on the PATH"),
            GitError::NoRepository { .. } => Complaint::usage(what)
                .todo("go to the project, or name it: tribunal -C DIR review …")
                .todo("without git, review files: tribunal review FILE"),
            GitError::Bare { .. } => {
                Complaint::usage(what).todo("go to a checkout of it: git worktree add DIR")
            }
            // Git refuses repositories of other users; the remedy is git's own.
            GitError::Distrusted { root } => Complaint::usage(what)
                .todo(format!("if you trust it: git config --global --add safe.directory {root}")),
            GitError::Slow { .. } | GitError::Flood { .. } => {
                Complaint::new(ENVIRONMENT, what).todo("name fewer files: put folders behind the command")
            }
            GitError::Failed { .. } | GitError::Unasked { .. } => {
                Complaint::new(ENVIRONMENT, what).todo("see whether git itself works here: git status")
            }
        };
        complaint.why(UNTOUCHED)
    }
}

/// The reason that is added to errors which stop a command before it did anything.
const UNTOUCHED: &str = "Nothing was started and nothing was changed.";

impl From<ChangeError> for Complaint {
    fn from(cause: ChangeError) -> Self {
        let what = cause.to_string();
        match cause {
            ChangeError::Git(cause) => cause.into(),
            ChangeError::NoRange { said } => Complaint::usage(what)
                .why(UNTOUCHED)
                // Naming HEAD alone usually means the changes that are not committed yet.
                // Each step is a whole command that can be copied.
                .todo(match said.as_str() {
                    "HEAD" | "@" => "what is not committed yet: tribunal review --work-tree".to_string(),
                    _ => format!("from there to HEAD: tribunal review --diff {said}..HEAD"),
                })
                .todo(format!("that commit alone: tribunal review --commit {said}")),
            ChangeError::Unknown { .. } => Complaint::usage(what)
                .why(UNTOUCHED)
                .todo("see which there are: git branch --all, git tag, git log --oneline")
                .todo("if it is on a server: git fetch"),
            ChangeError::Unrelated { shallow: false, one, other } => Complaint::usage(what)
                .why(UNTOUCHED)
                .todo(format!("compare them as they are: tribunal review --diff {one}..{other}")),
            ChangeError::Unrelated { .. } | ChangeError::Shallow { .. } => {
                Complaint::usage(what).why(UNTOUCHED).todo("get the history: git fetch --unshallow")
            }
            ChangeError::Conflicts { .. } => {
                Complaint::usage(what).why(UNTOUCHED).todo("resolve them first: git status")
            }
            ChangeError::Nothing { .. } => {
                Complaint::usage(what).why(UNTOUCHED).todo("change something first")
            }
            ChangeError::AllLeftOut { reasons, .. } => {
                Complaint::usage(what).why(reasons.join("\n")).todo("name a change of text files (UTF-8)")
            }
            ChangeError::Differs { staged, .. } => Complaint::usage(what)
                // The reason has to be given, because a review without fixes would work.
                .why(format!("Fixes land in the work tree, so it must have what is reviewed. {UNTOUCHED}"))
                .todo(match staged {
                    true => "put aside what is not staged, and take it out again later: git stash --keep-index, git stash pop",
                    false => "check out what it ends in, without changes of your own: git stash, git switch",
                }),
            ChangeError::TooBig { .. } => {
                // The command adds one step per directory, because only it knows how the range was typed.
                let (parts, files, size) =
                    (changes::MOST_PARTS, changes::MOST_FILES, kilobytes(changes::MOST_BYTES));
                Complaint::usage(what).why(format!(
                    "A review has at most {parts} parts of {files} files and {size} of diff. {UNTOUCHED}\n\
                     Narrow it to folders; the biggest are:"
                ))
            }
            ChangeError::Unreadable { .. } => Complaint::new(ENVIRONMENT, what)
                .why(UNTOUCHED)
                .todo("look at its permissions, and whether the disk is full"),
        }
    }
}

impl From<StoreError> for Complaint {
    fn from(cause: StoreError) -> Self {
        let what = cause.to_string();
        match cause {
            StoreError::Newer { .. } => Complaint::usage(what)
                .why("Writing it with this version could lose what the newer one recorded.")
                .todo("use the newer Tribunal for this project")
                .todo("reading still works here: tribunal runs, findings, log"),
            StoreError::Empty { .. } => {
                Complaint::usage(what).why("No run was ever recorded in it.").todo("start one: tribunal review FILE")
            }
            StoreError::Foreign { .. } => {
                Complaint::usage(what).todo("move that file away; Tribunal makes a new journal")
            }
            StoreError::Network { .. } => Complaint::new(ENVIRONMENT, what)
                .why("The journal needs memory that its readers and writers share, which a network does not give: two\n\
                      machines could write over each other. Nothing was started.")
                .todo("work on a copy of the project on a local disk"),
            StoreError::Full { path } => Complaint::new(ENVIRONMENT, what)
                .why("Without its journal a run could not be resumed, so nothing goes on. What was recorded is kept.")
                .todo(format!("make room on the disk: df {}", path.display())),
            StoreError::Gone { .. } => Complaint::new(ENVIRONMENT, what)
                .why("What the run had recorded went with it, so nothing goes on and nothing more is written.")
                .todo("put the folder back if it was only moved, then: tribunal runs"),
            StoreError::Create { .. } | StoreError::Database { .. } | StoreError::Writer(_) => {
                Complaint::new(ENVIRONMENT, what)
                    .why("Without its journal a run could not be resumed, so nothing is started and nothing goes on.")
                    .todo("make the project's folder writable, and see that neither disk nor system is full")
            }
            // These cannot happen with a journal that this program wrote.
            StoreError::Entry { .. } | StoreError::Unwritable(_) | StoreError::NoBlob(_) => bug(what),
        }
    }
}

impl From<GcError> for Complaint {
    fn from(cause: GcError) -> Self {
        let what = cause.to_string();
        match cause {
            GcError::Store(cause) => cause.into(),
            GcError::Link { path } => Complaint::usage(what)
                .why("Behind it could be what is not Tribunal's to remove. Nothing was removed.")
                .todo(format!("see where it leads: ls -ld {path}"))
                .todo("put a folder in its place, then: tribunal gc"),
            GcError::Unseen { path, .. } => Complaint::new(ENVIRONMENT, what)
                .why("Nothing was removed.")
                .todo(format!("look at its permissions: ls -ld {path}")),
        }
    }
}

impl From<LandingsError> for Complaint {
    fn from(cause: LandingsError) -> Self {
        let what = cause.to_string();
        match cause {
            LandingsError::Store(cause) => cause.into(),
            LandingsError::NoFinding { run, .. } => {
                Complaint::usage(what).todo(format!("see which there are: tribunal findings {run}"))
            }
            LandingsError::NoCheckpoint { run } => Complaint::usage(what)
                .why("What it changed can neither be shown nor taken back. Nothing was changed.")
                .todo(format!("the text from before the run is kept: ls .tribunal/originals/{run}")),
            LandingsError::InSession { .. } => Complaint::usage(what)
                .why("Tribunal has no copy of it, as of nothing that you type yourself. Nothing was changed.")
                .todo("git diff"),
            LandingsError::Damaged { run, .. } => Complaint::new(ENVIRONMENT, what)
                .why("Nothing was changed.")
                .todo(format!("look at what is kept: ls -lR .tribunal/checkpoints/{run}"))
                .todo(format!("the text from before the run is kept, too: ls .tribunal/originals/{run}")),
        }
    }
}

impl From<UndoError> for Complaint {
    fn from(cause: UndoError) -> Self {
        let what = cause.to_string();
        let untouched = "Nothing was changed.";
        let halfway = "Other files were taken back already; the same command does the rest.";
        match cause {
            UndoError::Landings(cause) => cause.into(),
            UndoError::Run(cause) => cause.into(),
            // The steps of a subject error are about reviews and would mislead here.
            UndoError::Subject(cause) => Complaint { todo: Vec::new(), ..Complaint::from(cause) }
                .why(untouched)
                .todo("put the file back as a text file inside the project, then try again"),
            UndoError::UnderWay { run } => Complaint::usage(what)
                .why(format!("Whether it landed is found out when the run goes on. {untouched}"))
                .todo(format!("tribunal resume {run}")),
            UndoError::Together { run, finding, .. } => Complaint::usage(what)
                .why(format!("They can only be taken back together. {untouched}"))
                .todo(format!("see what that would do: tribunal undo {run}.{finding}"))
                .todo(format!("take all of them back: tribunal undo {run}.{finding} --together --yes")),
            UndoError::Link { path } => Complaint::usage(what)
                .why(format!("What landed was a change of a file in its place. {untouched}"))
                .todo(format!("see where it leads: ls -l {path}")),
            UndoError::Conflict { run, finding, alone, .. } => {
                // Without a finding the whole run is meant.
                let landed = finding.map_or_else(String::new, |finding| format!(" {finding}"));
                let complaint = Complaint::new(NEGATIVE, what)
                    .why(format!("Taking the change back would lose what was written there since. {untouched}"))
                    .todo(format!("take it back by hand; what it was: tribunal diff {run}{landed}"));
                match finding {
                    _ if alone => complaint,
                    Some(_) => complaint
                        .todo(format!("if it was a later repair, take all of them back: tribunal undo {run}")),
                    None => complaint
                        .todo(format!("take back what can be, one by one: tribunal undo {run}.FINDING")),
                }
            }
            UndoError::Changing { begun, .. } => Complaint::new(NEGATIVE, what)
                .why(if begun { halfway } else { untouched })
                .todo("try again when nobody else writes it"),
            UndoError::Parking { .. } => Complaint::new(ENVIRONMENT, what)
                .why(format!("Without that, what stands there now could be lost. {untouched}"))
                .todo("see that .tribunal/parked is a folder that can be written, and that the disk is not full"),
            UndoError::Writing { begun, .. } => Complaint::new(ENVIRONMENT, what)
                .why(if begun { halfway } else { untouched })
                .todo("see that its folder can be written, and that the disk is not full"),
        }
    }
}

/// Adds the step to resume a run. A run that was under way can continue; the journal says from where.
fn going_on(complaint: Complaint, run: &RunId) -> Complaint {
    match complaint.exit {
        // Only a problem of the environment goes away by itself or by the user's hand.
        ENVIRONMENT => complaint.todo(format!("then: tribunal resume {run}")),
        _ => complaint,
    }
}

impl From<RunError> for Complaint {
    fn from(cause: RunError) -> Self {
        let what = cause.to_string();
        match cause {
            RunError::Store(cause) => cause.into(),
            RunError::Subject(cause) => cause.into(),
            RunError::Project { .. } => Complaint::new(ENVIRONMENT, what)
                .why("Tribunal keeps its journal in the project; without it nothing is started.")
                .todo("make the project's folder writable, or copy the project to where it is"),
            RunError::LeadsOut { .. } => Complaint::usage(what)
                .why("Tribunal writes inside the project only. Nothing was started.")
                .todo("put a folder in the place of the link, or set `output_folder` to one inside the project"),
            // The other run may be watched or awaited, but not replaced.
            RunError::SubjectBusy { by, .. } => Complaint::usage(what)
                .why("Two runs on one subject would undo each other's work.")
                .todo(format!("watch the other one: tribunal status {by}"))
                .todo("or wait until it has ended"),
            RunError::RunBusy { run } => Complaint::usage(what).todo(format!("tribunal status {run}")),
            RunError::NoRun { .. } => Complaint::usage(what).todo("tribunal runs"),
            RunError::Ended { run, .. } => Complaint::usage(what)
                .why("There is nothing left to go on with.")
                .todo(format!("tribunal log {run}")),
            RunError::OtherVersion { .. } | RunError::UnknownEntry { .. } => {
                Complaint::usage(what).todo("finish the run with the Tribunal that started it")
            }
            RunError::SettingsDoNotFit { run, .. } => Complaint::usage(what)
                .why("Nothing was changed: the run keeps the settings it has.")
                .todo(format!("go on with those: tribunal resume {run}"))
                .todo("or start anew with the changed ones: tribunal review FILE"),
            RunError::SecretInSettings { .. } => Complaint::usage(what)
                .why("Settings are recorded with the run, and nothing secret is ever recorded. Nothing was started.")
                .todo("put it into an environment variable that the agent or the check reads itself"),
            RunError::Session(cause) => cause.into(),
            // A run that lost its journal can go on once the environment is repaired.
            RunError::Host { cause: HostError::Store(cause), run } => going_on(cause.into(), &run),
            RunError::Host { .. } => bug(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_is_called_like_what_is_staged_is_a_branch() {
        let said = |range: &str, staged: bool| {
            let files = vec!["a.rs".to_string()];
            Complaint::from(ChangeError::Differs { range: range.into(), staged, files }).to_string()
        };
        assert!(said("staged", true).contains("git stash --keep-index"));
        let branch = said("staged-work..HEAD", false);
        assert!(branch.contains("git switch") && !branch.contains("--keep-index"), "{branch}");
    }

    #[test]
    fn nothing_in_a_complaint_steers_the_terminal() {
        let complaint = Complaint::usage("a\x1b[2J\nb")
            .why("two lines\nof \x1b]0;title\x07 \u{202e}names")
            .todo("ls 'x\u{9b}31m\n[!] forged'");
        insta::assert_snapshot!(complaint, @r"
        [!] a\u{1b}[2J\nb
            two lines
            of \u{1b}]0;title\u{7} \u{202e}names
            1. ls 'x\u{9b}31m\n[!] forged'
        ");
    }
}
