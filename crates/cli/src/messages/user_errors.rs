//! Errors as the user reads them, and the exit codes that go with them: this is the only place where errors meet codes.

mod housekeeping;
mod journal;
mod undoing;

use std::{fmt, io};

use serde_json::json;
use tribunal_engine::{ids::RunId, text::shell_quote};
use tribunal_report::{clean_block, escape_line};
use tribunal_runner::{
    MAX_SUBJECT_BYTES, RunError,
    engine::host::HostError,
    git::{
        GitError,
        changes::{self, ChangeError, format_bytes},
    },
    housekeeping::gc::GcError,
    project::{story_plan::StoryPlanError, subject::SubjectError},
};

/// Exit code for wrong usage or settings.
pub(crate) const EXIT_USAGE: u8 = 2;
/// Exit code for a failing agent or environment.
pub(crate) const EXIT_ENVIRONMENT: u8 = 5;
/// Exit code for a bug of ours.
pub(crate) const EXIT_INTERNAL: u8 = 1;
/// Exit code for a run that waits for the user, and for a check with a negative result.
pub(crate) const EXIT_NEGATIVE: u8 = 3;
/// Exit code for a run that reached a limit. Runs take it from the table of reasons in `engine`.
pub(crate) const EXIT_HALTED: u8 = 4;
/// Exit code for a run that was interrupted. Runs take it from the table of reasons in `engine`.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// How this program is started where no project was named.
const PROGRAM_NAME: &str = "tribunal";

/// What the user can do about an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SuggestedStep {
    Instruction(String),
    /// Run `tribunal doctor`. The doctor itself leaves this step out.
    RunDoctor,
}

impl fmt::Display for SuggestedStep {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SuggestedStep::Instruction(instruction) => formatter.write_str(instruction),
            SuggestedStep::RunDoctor => formatter.write_str("find out what is missing: `tribunal doctor`"),
        }
    }
}

/// Formats what to do about a problem, one line per step: `help: …` for a single step, else numbered.
pub(crate) fn format_steps(steps: impl ExactSizeIterator<Item = impl fmt::Display>) -> Vec<String> {
    // Only several steps have an order that numbers could show.
    let is_single = steps.len() == 1;
    let to_line = |(index, step): (usize, _)| match is_single {
        true => format!("help: {}", escape_line(&format!("{step}"))),
        false => format!("{}. {}", index + 1, escape_line(&format!("{step}"))),
    };
    steps.enumerate().map(to_line).collect()
}

/// An error: what happened, why it matters, what to do.
#[derive(Debug)]
pub(crate) struct UserError {
    pub exit_code: u8,
    pub message: String,
    pub reason: String,
    pub steps: Vec<SuggestedStep>,
    is_broken_pipe: bool,
}

impl UserError {
    pub fn new(exit_code: u8, message: impl Into<String>) -> UserError {
        UserError {
            exit_code,
            message: message.into(),
            reason: String::new(),
            steps: Vec::new(),
            is_broken_pipe: false,
        }
    }

    pub fn usage(message: impl Into<String>) -> UserError {
        UserError::new(EXIT_USAGE, message)
    }

    pub fn with_reason(mut self, reason: impl Into<String>) -> UserError {
        self.reason = reason.into();
        self
    }

    /// Adds a step. Advice that comes from elsewhere may be empty, and then there is no step.
    pub fn with_step(mut self, instruction: impl Into<String>) -> UserError {
        let instruction = instruction.into();
        if !instruction.is_empty() {
            self.steps.push(SuggestedStep::Instruction(instruction));
        }
        self
    }

    /// Rewrites the commands in reason and steps as the user has to type them for the same project. They are written as
    /// `tribunal …` in backticks wherever errors are made, because only the command line knows about `-C DIR`.
    pub fn with_program_name(mut self, program_name: &str) -> UserError {
        if program_name != PROGRAM_NAME {
            self.reason = name_program(&self.reason, program_name);
            for step in &mut self.steps {
                *step = SuggestedStep::Instruction(name_program(&step.to_string(), program_name));
            }
        }
        self
    }

    /// Returns the message and its first step in one line, for a warning.
    pub fn to_single_line(&self) -> String {
        match self.steps.first() {
            Some(first_step) => format!("{}; {first_step}", self.message),
            None => self.message.clone(),
        }
    }

    pub fn with_doctor_step(mut self) -> UserError {
        self.steps.push(SuggestedStep::RunDoctor);
        self
    }

    pub fn is_closed_pipe(&self) -> bool {
        self.is_broken_pipe
    }

    /// Reads the error of another Tribunal process, as written by [`UserError::to_json`].
    pub fn from_json(error_json: &serde_json::Value) -> Option<UserError> {
        let text_field = |field_name: &str| error_json[field_name].as_str().map(String::from);
        // Steps are optional; everything else must be there.
        let step_values = error_json["todo"].as_array().into_iter().flatten();
        Some(UserError {
            exit_code: u8::try_from(error_json["exit"].as_u64()?).ok()?,
            message: text_field("error")?,
            reason: text_field("why")?,
            steps: step_values
                .filter_map(|step_value| Some(SuggestedStep::Instruction(step_value.as_str()?.to_string())))
                .collect(),
            is_broken_pipe: false,
        })
    }

    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "schema": "tribunal.error/1",
            "exit": self.exit_code,
            "error": self.message,
            "why": self.reason,
            "todo": self.steps.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}

/// Replaces our name at the beginning of every quoted command, unless the command already names a project.
pub(crate) fn name_program(text: &str, program_name: &str) -> String {
    let command_start = format!("`{PROGRAM_NAME} ");
    let mut text_parts = text.split(command_start.as_str());
    let mut rewritten = text_parts.next().unwrap_or_default().to_string();
    for text_part in text_parts {
        let names_project = text_part.starts_with("-C ");
        rewritten.push_str(&if names_project { command_start.clone() } else { format!("`{program_name} ") });
        rewritten.push_str(text_part);
    }
    rewritten
}

impl fmt::Display for UserError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // File names may contain anything, even line breaks and cursor movements.
        writeln!(formatter, "error: {}", escape_line(&self.message))?;
        for reason_line in clean_block(&self.reason).lines() {
            writeln!(formatter, "  {reason_line}")?;
        }
        for step_line in format_steps(self.steps.iter()) {
            writeln!(formatter, "  {step_line}")?;
        }
        Ok(())
    }
}

impl From<io::Error> for UserError {
    fn from(cause: io::Error) -> Self {
        // A closed pipe is remembered by its kind, because the message is only for users.
        let is_broken_pipe = cause.kind() == io::ErrorKind::BrokenPipe;
        let user_error = UserError::new(EXIT_ENVIRONMENT, format!("I/O error: {cause}"))
            .with_step("make sure that the disk is not full and that the output can be written");
        UserError { is_broken_pipe, ..user_error }
    }
}

impl From<serde_json::Error> for UserError {
    fn from(cause: serde_json::Error) -> Self {
        // Writing JSON to a closed pipe fails with an error of serde; the original kind is inside.
        match cause.io_error_kind() {
            Some(kind) => io::Error::from(kind).into(),
            None => internal_error(cause.to_string()),
        }
    }
}

/// The error for a bug of ours.
pub(crate) fn internal_error(message: impl Into<String>) -> UserError {
    UserError::new(EXIT_INTERNAL, message)
        .with_reason("This is a bug in Tribunal.")
        .with_step("report it with the command that you ran and the output of `tribunal --version`")
}

/// The error for a bug of ours in a run, whose journal shows what led to it.
fn internal_run_error(message: impl Into<String>, run_id: &RunId) -> UserError {
    let user_error = UserError::new(EXIT_INTERNAL, message);
    user_error
        .with_reason("This is a bug in Tribunal. The journal is kept.")
        .with_step(format!("report it with the output of `tribunal log {run_id} --json`"))
}

impl From<SubjectError> for UserError {
    fn from(cause: SubjectError) -> Self {
        let message = cause.to_string();
        let user_error = match &cause {
            SubjectError::Missing { .. } => {
                UserError::usage(message).with_step("check the path; it is relative to the current directory")
            }
            SubjectError::Folder { path: file_path } => {
                UserError::usage(message).with_step(format!("pass its files: `tribunal review {file_path}/*.md`"))
            }
            SubjectError::TooLong { .. } => UserError::usage(message)
                .with_reason(format!(
                    "Reviewers read the whole subject, and beyond {} MB they are no longer thorough.",
                    MAX_SUBJECT_BYTES >> 20
                ))
                .with_step("split the file and review its parts"),
            SubjectError::Empty { .. } => UserError::usage(message).with_step("add some text first"),
            SubjectError::Binary { .. } | SubjectError::Special { .. } => {
                UserError::usage(message).with_step("pass a text file (UTF-8)")
            }
            SubjectError::Unreadable { path: file_path, .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_step(format!("check its permissions: `ls -l {file_path}`")),
            SubjectError::Outside { .. } => UserError::usage(message)
                .with_step("run Tribunal in the project that contains the file, or pass that project with `-C DIR`"),
        };
        // All of these are found before anything starts.
        if user_error.reason.is_empty() { user_error.with_reason(NOTHING_CHANGED) } else { user_error }
    }
}

impl From<StoryPlanError> for UserError {
    fn from(plan_error: StoryPlanError) -> UserError {
        let user_error = UserError::usage(plan_error.to_string()).with_reason("Nothing was started.");
        match plan_error {
            StoryPlanError::NoFile { expected_path, .. } => user_error
                .with_step(format!("write it: {expected_path}"))
                .with_step("or install BMAD's workflows: `npx bmad-method install`"),
            StoryPlanError::Unreadable { .. } => {
                user_error.with_step("make it a regular file of this project in UTF-8 that you may read")
            }
            StoryPlanError::BrokenFrontMatter { .. } => {
                user_error.with_step("fix the YAML between the two lines `---` at its top, or remove it")
            }
        }
    }
}

impl From<GitError> for UserError {
    fn from(cause: GitError) -> Self {
        let message = cause.to_string();
        let user_error = match cause {
            GitError::NotInstalled => {
                UserError::new(EXIT_ENVIRONMENT, message).with_step("install git, or add it to PATH")
            }
            GitError::NoRepository { .. } => UserError::usage(message)
                .with_step("change to the project directory, or pass it: `tribunal -C DIR review …`")
                .with_step("review files, which works without git: `tribunal review FILE`"),
            GitError::BareRepository { .. } => {
                UserError::usage(message).with_step("create a checkout and run Tribunal there: `git worktree add DIR`")
            }
            // Git refuses repositories of other users; the remedy is git's own.
            GitError::UntrustedOwner { root } => UserError::usage(message)
                .with_step(format!("to allow this: `git config --global --add safe.directory {root}`")),
            GitError::TimedOut { .. } | GitError::TooMuchOutput { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_step("review fewer files: append directories to the command"),
            GitError::CommandFailed { .. } | GitError::CannotRun { .. } => {
                UserError::new(EXIT_ENVIRONMENT, message).with_step("check that git works here: `git status`")
            }
        };
        user_error.with_reason(NOTHING_CHANGED)
    }
}

/// The reason that is added to errors which stop a command before it did anything.
const NOTHING_CHANGED: &str = "Nothing was started or changed.";

impl From<ChangeError> for UserError {
    fn from(cause: ChangeError) -> Self {
        let message = cause.to_string();
        match cause {
            ChangeError::Git(cause) => cause.into(),
            ChangeError::NotARange { said: typed_range } => UserError::usage(message)
                .with_reason(NOTHING_CHANGED)
                // A user who names HEAD alone probably means the changes that are not committed yet.
                // Each step is a whole command that can be copied.
                .with_step(match typed_range.as_str() {
                    "HEAD" | "@" => "review uncommitted changes: `tribunal review --work-tree`".to_string(),
                    _ => format!("review everything from there to HEAD: `tribunal review --diff {typed_range}..HEAD`"),
                })
                .with_step(format!("review only that commit: `tribunal review --commit {typed_range}`")),
            ChangeError::UnknownRevision { .. } => UserError::usage(message)
                .with_reason(NOTHING_CHANGED)
                .with_step("list revisions: `git branch --all`, `git tag` or `git log --oneline`")
                .with_step("if it only exists on a remote: `git fetch`"),
            ChangeError::NoCommonHistory { shallow: false, one: first_revision, other: second_revision } => {
                UserError::usage(message).with_reason(NOTHING_CHANGED).with_step(format!(
                    "compare them directly: `tribunal review --diff {first_revision}..{second_revision}`"
                ))
            }
            ChangeError::NoCommonHistory { .. } | ChangeError::ShallowHistory { .. } => UserError::usage(message)
                .with_reason(NOTHING_CHANGED)
                .with_step("fetch the full history: `git fetch --unshallow`"),
            ChangeError::UnresolvedConflicts { .. } => UserError::usage(message)
                .with_reason(NOTHING_CHANGED)
                .with_step("resolve the conflicts; list them with `git status`"),
            ChangeError::EmptyChange { .. } => {
                UserError::usage(message).with_reason(NOTHING_CHANGED).with_step("change something first")
            }
            ChangeError::NothingReviewable { reasons, .. } => UserError::usage(message)
                .with_reason(reasons.join("\n"))
                .with_step("pass a change that contains text files (UTF-8)"),
            ChangeError::WorkTreeDiffers { staged, .. } => UserError::usage(message)
                // The reason has to be given, because a review without fixes would work.
                .with_reason(format!(
                    "Fixes are applied to the work tree, so it must match what is reviewed. {NOTHING_CHANGED}"
                ))
                .with_step(match staged {
                    true => {
                        "stash unstaged changes (`git stash --keep-index`) and restore them later (`git stash pop`)"
                    }
                    false => "stash your own changes (`git stash`) and check out the end of the range (`git switch`)",
                }),
            ChangeError::TooBig { .. } => {
                // The command adds one step per directory, because only it knows how the range was typed.
                let (max_parts, max_files, max_size) =
                    (changes::MAX_PARTS, changes::MAX_PART_FILES, format_bytes(changes::MAX_PART_BYTES));
                UserError::usage(message).with_reason(format!(
                    "A review has at most {max_parts} parts, each with up to {max_files} files and {max_size} of diff.\n\
                     {NOTHING_CHANGED} Narrow it to directories. The largest are:"
                ))
            }
            ChangeError::Unreadable { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason(NOTHING_CHANGED)
                .with_step("check its permissions and the free disk space"),
        }
    }
}

impl From<GcError> for UserError {
    fn from(cause: GcError) -> Self {
        let message = cause.to_string();
        match cause {
            GcError::Store(cause) => cause.into(),
            GcError::IsLink { path: file_path } => UserError::usage(message)
                .with_reason("It may lead to files that do not belong to Tribunal. Nothing was removed.")
                .with_step(format!("check where it leads: `ls -ld {file_path}`"))
                .with_step("replace it with a directory, then run `tribunal gc` again"),
            GcError::CannotInspect { path: file_path, .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason("Nothing was removed.")
                .with_step(format!("check its permissions: `ls -ld {file_path}`")),
        }
    }
}

/// Adds the step to resume a run. A run that was under way can continue; the journal says from where.
fn with_resume_step(user_error: UserError, run_id: &RunId) -> UserError {
    match user_error.exit_code {
        // Only a problem of the environment goes away by itself or by the user's hand.
        EXIT_ENVIRONMENT => user_error.with_step(format!("then resume the run: `tribunal resume {run_id}`")),
        _ => user_error,
    }
}

impl From<RunError> for UserError {
    fn from(cause: RunError) -> Self {
        let message = cause.to_string();
        match cause {
            RunError::Store(cause) => cause.into(),
            RunError::Subject(cause) => cause.into(),
            RunError::Project { project: occupied_path, cause } if cause.kind() == io::ErrorKind::NotADirectory => {
                let quoted_path = shell_quote(&occupied_path.to_string_lossy());
                UserError::new(EXIT_ENVIRONMENT, format!("{} is not a directory", occupied_path.display()))
                    .with_reason("Tribunal keeps its journal there. Nothing was started.")
                    .with_step(format!("move the file away: `mv {quoted_path} {quoted_path}.old`"))
            }
            RunError::Project { .. } => UserError::new(EXIT_ENVIRONMENT, message)
                .with_reason("Tribunal keeps its journal in the project. Without it, nothing is started.")
                .with_step("make the project directory writable, or copy the project to a writable place"),
            RunError::LeadsOut { .. } => UserError::usage(message)
                .with_reason("Tribunal only writes inside the project. Nothing was started.")
                .with_step(
                    "replace the link with a directory, or set `output_folder` to a directory inside the project",
                ),
            // The other run may be watched or awaited, but not replaced.
            RunError::SubjectLocked { by: other_run, .. } => UserError::usage(message)
                .with_reason("Two runs on the same subject would overwrite each other's work.")
                .with_step(format!("check the other run: `tribunal status {other_run}`"))
                .with_step("or wait until it has ended"),
            RunError::RunLocked { run: run_id } => {
                UserError::usage(message).with_step(format!("check what it is doing: `tribunal status {run_id}`"))
            }
            RunError::NoRun { .. } => UserError::usage(message).with_step("list all runs: `tribunal runs`"),
            RunError::Ended { run: run_id, .. } => UserError::usage(message)
                .with_reason("There is nothing left to resume.")
                .with_step(format!("show what it did: `tribunal log {run_id}`")),
            RunError::DrivenBySession { run: run_id } => UserError::usage(message)
                .with_reason("Its session continues by itself; Tribunal only holds it to its task.")
                .with_step(format!("check how it stands: `tribunal status {run_id}`"))
                .with_step(format!("if it asks something, answer it: `tribunal decisions {run_id}`")),
            RunError::TooDeep { .. } => UserError::usage(message).with_reason("Nothing was started."),
            RunError::IncompatibleVersion { .. } | RunError::UnknownEntry { .. } | RunError::UnknownKind { .. } => {
                UserError::usage(message).with_step("finish the run with the version of Tribunal that started it")
            }
            RunError::SettingsDoNotFit { run: run_id, .. } => UserError::usage(message)
                .with_reason("A task that is not finished depends on them. The run keeps its settings.")
                .with_step(format!("resume it with its current settings: `tribunal resume {run_id}`"))
                .with_step("or start a new run with the changed settings"),
            RunError::SecretInSettings { .. } => UserError::usage(message)
                .with_reason(
                    "Settings are recorded with the run, and secrets must not be recorded. Nothing was started.",
                )
                .with_step("move it to an environment variable that the agent or the check reads itself"),
            RunError::Session(cause) => cause.into(),
            RunError::Inspection { .. } => UserError::new(EXIT_ENVIRONMENT, message),
            // A run that lost its journal can go on once the environment is repaired.
            RunError::Host { cause: HostError::Store(cause), run: run_id } => with_resume_step(cause.into(), &run_id),
            RunError::Host { run: run_id, .. } => internal_run_error(message, &run_id),
        }
    }
}

#[cfg(test)]
mod tests {
    use tribunal_runner::landing::landings::LandingsError;

    use super::*;

    #[test]
    fn a_branch_named_like_staged_changes_is_a_branch() {
        let error_text = |range_text: &str, is_staged: bool| {
            let changed_files = vec!["a.rs".to_string()];
            UserError::from(ChangeError::WorkTreeDiffers {
                range: range_text.into(),
                staged: is_staged,
                files: changed_files,
            })
            .to_string()
        };
        assert!(error_text("staged", true).contains("git stash --keep-index"));
        let branch_error = error_text("staged-work..HEAD", false);
        assert!(branch_error.contains("git switch") && !branch_error.contains("--keep-index"), "{branch_error}");
    }

    #[test]
    fn commands_name_the_project_that_the_user_named() {
        let user_error = UserError::usage("no run named `x`")
            .with_reason("See `tribunal runs` first.")
            .with_step("list them: `tribunal runs`, or `tribunal -C DIR runs` elsewhere")
            .with_doctor_step();
        let plain_text = user_error.to_string();
        let renamed_text = user_error.with_program_name("tribunal -C 'my app'").to_string();
        assert_eq!(
            renamed_text,
            plain_text
                .replace("`tribunal runs`", "`tribunal -C 'my app' runs`")
                .replace("`tribunal doctor`", "`tribunal -C 'my app' doctor`")
        );
        assert!(renamed_text.contains("`tribunal -C DIR runs`"), "{renamed_text}");
    }

    #[test]
    fn empty_advice_is_no_step() {
        assert_eq!(UserError::usage("x").with_step("").to_string(), "error: x\n");
    }

    #[test]
    fn only_a_bug_in_a_run_asks_for_its_journal() {
        assert!(!internal_error("x").to_string().contains("tribunal log"));
        assert!(internal_run_error("x", &RunId::new("plan-1")).to_string().contains("`tribunal log plan-1 --json`"));
    }

    #[test]
    fn git_is_suggested_only_where_there_is_a_repository() {
        let error_text = |has_git: bool| {
            UserError::from(LandingsError::ChangedInSession { run: RunId::new("plan-1"), has_git }).to_string()
        };
        assert!(error_text(true).contains("`git diff`") && !error_text(false).contains("git"));
    }

    #[test]
    fn no_text_in_an_error_controls_the_terminal() {
        let user_error = UserError::usage("a\x1b[2J\nb")
            .with_reason("two lines\nof \x1b]0;title\x07 \u{202e}names")
            .with_step("ls 'x\u{9b}31m\nerror: forged'");
        insta::assert_snapshot!(user_error, @r"
        error: a\u{1b}[2J\nb
          two lines
          of \u{1b}]0;title\u{7} \u{202e}names
          help: ls 'x\u{9b}31m\nerror: forged'
        ");
    }
}
