//! Runs checks, all of them, one after the other: in a copy of the project, or in a workspace for development.

use std::{
    collections::VecDeque,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tribunal_engine::{
    fault::Fault,
    ids::{Key, TreeId},
};
use tribunal_workflows::{
    development::{
        checks::{CheckResult, CheckSpec, CheckStatus, ChecksOutcome, ChecksReport, CommandLine},
        parking::name_files,
    },
    findings::subject::Subject,
};

use super::{
    EffectContext, PerformedEffect,
    commands::{CommandFailure, run_check_command},
    environment_fault,
    land::run_file_work,
};
use crate::{
    blocking_work::run_blocking,
    masking::Masker,
    workspaces::{
        TaskWorkspace, WorkspaceSource,
        development::{
            CheckTraces, GuardedFiles, JudgedTraces, WorkSnapshot, WorkspaceError, frozen_work::TreeHold,
            read_guarded_checkout,
        },
    },
};

/// The most names of missing files that are reported.
const MAX_DIFFERENCES: usize = 10;
/// How many files are looked for in a copy.
const MAX_COMPARED_FILES: usize = 20_000;

/// Runs checks in a workspace for development. Returns `None` if the user ended one of them.
pub(super) async fn run_in_workspace(
    context: &Arc<EffectContext>,
    workspace_name: String,
    tree: Option<TreeId>,
    checks: &[CheckSpec],
) -> Option<PerformedEffect<ChecksOutcome>> {
    let opened = match open_workspace(context, workspace_name, tree).await {
        Ok(FoundPlace::Opened(opened)) => *opened,
        Ok(FoundPlace::Edited(paths)) => return Some(ChecksOutcome::Edited { paths }.into()),
        Err(fault) => return Some(ChecksOutcome::from(fault).into()),
    };
    let OpenedPlace { directory, guarded_files, mut guard } = opened;
    let stands_alone = guard.stands_alone;
    let mut outcome = run_all(context, checks, &directory, Some(&mut guard)).await;
    // Also after checks that the user has stopped: what they changed must not become a part of the work.
    if let Err(fault) = guard.finish().await {
        outcome = outcome.map(|_| ChecksOutcome::from(fault).into());
    }
    // Checks run code that agents have changed.
    let remarks = put_back_guarded(guarded_files).await;
    if let Some(PerformedEffect { reply: ChecksOutcome::Ran(report), .. }) = &mut outcome {
        report.remarks = guard.remarks.into_iter().chain(remarks).collect();
        report.stands_alone = stands_alone;
    }
    add_differences(context, outcome, directory).await
}

/// Runs checks in a private copy of the project. Returns `None` if the user ended one of them.
pub(super) async fn run_in_copy(
    context: &Arc<EffectContext>,
    effect_key: &Key,
    subject: &Subject,
    checks: &[CheckSpec],
) -> Option<PerformedEffect<ChecksOutcome>> {
    let workspace = TaskWorkspace::from_directory(context.project.task_dir(&context.run_id, effect_key));
    if let Err(cause) = create_copy(context, &workspace, subject).await {
        return Some(failed_outcome(&format!("could not create a workspace for the checks: {cause}")));
    }
    let outcome = run_all(context, checks, &workspace.tree_dir(), None).await;
    let outcome = add_differences(context, outcome, workspace.tree_dir()).await;
    // Whether the cleanup succeeds does not matter: the workspace is removed with its run at the latest.
    let _ = run_file_work(move || workspace.remove()).await;
    outcome
}

/// Runs the checks in the user's checkout, as the user asked for it. Returns `None` if the user ended one of them.
pub(crate) async fn run_checks_in_checkout(
    context: &Arc<EffectContext>,
    checks: &[CheckSpec],
) -> Option<PerformedEffect<ChecksOutcome>> {
    let guard_context = context.clone();
    let guard = move || read_guarded_checkout(&guard_context.project, &guard_context.run_id).map_err(io::Error::other);
    let guarded_files = match run_file_work(guard).await {
        Ok(guarded_files) => guarded_files,
        Err(cause) => return Some(failed_outcome(&format!("could not read git's settings: {cause}"))),
    };
    let mut outcome = run_all(context, checks, context.project.root(), None).await;
    // Checks run code that agents have changed.
    let remarks = put_back_guarded(Some(guarded_files)).await;
    if let Some(PerformedEffect { reply: ChecksOutcome::Ran(report), .. }) = &mut outcome {
        report.remarks = remarks;
    }
    outcome
}

/// A workspace in which checks run.
struct OpenedPlace {
    directory: PathBuf,
    /// What they must not change in the user's checkout.
    guarded_files: Option<GuardedFiles>,
    guard: WorkGuard,
}

enum FoundPlace {
    Opened(Box<OpenedPlace>),
    /// The user has edited these files since the content was frozen.
    Edited(Vec<String>),
}

/// Finds the directory in which checks run, with the content that is checked, and reads what they must not change.
async fn open_workspace(
    context: &Arc<EffectContext>,
    workspace_name: String,
    tree: Option<TreeId>,
) -> Result<FoundPlace, Fault> {
    let context = context.clone();
    run_git_work(move || {
        let workspace = context.find_development_workspace(&workspace_name)?;
        let (directory, guarded_files) = (workspace.agent_dir(), workspace.read_guarded_files()?);
        let mut put_back = CheckTraces::default();
        let tree = match tree {
            Some(tree) => tree,
            None => {
                context.enter_checkout(&workspace)?;
                let frozen = workspace.freeze_content(&context.masker)?;
                put_back.add_traces(frozen.left);
                frozen.tree
            }
        };
        let mut held = match workspace.hold_tree(&tree)? {
            TreeHold::Held(held) => held,
            TreeHold::Edited(paths) => return Ok(FoundPlace::Edited(paths)),
        };
        put_back.add_traces(std::mem::take(&mut held.put_back));
        let snapshot = workspace.begin_checks(held)?;
        let guard = WorkGuard {
            stands_alone: snapshot.stands_alone(),
            snapshot: Some(snapshot),
            remarks: put_back.describe().into_iter().collect(),
            made: Vec::new(),
            has_unseen_check: false,
        };
        Ok(FoundPlace::Opened(Box::new(OpenedPlace { directory, guarded_files, guard })))
    })
    .await
}

/// Compares the work before and after each check.
pub(super) struct WorkGuard {
    /// `None` while another thread has it.
    snapshot: Option<WorkSnapshot>,
    /// Whether there was nothing but the work at first.
    stands_alone: bool,
    remarks: Vec<String>,
    /// Files that checks have made, with the check that did.
    made: Vec<(CommandLine, Vec<String>)>,
    /// Whether a check has begun after which the work was not compared yet.
    has_unseen_check: bool,
}

impl WorkGuard {
    /// Puts back what a check has changed. A check that changes the work has failed, unless it does that without the work, too.
    async fn judge(&mut self, result: &mut CheckResult, masker: &Masker) -> Result<(), Fault> {
        let command = result.command.clone();
        let judged = self.with_snapshot(move |snapshot| snapshot.judge_changes(&command)).await?;
        let JudgedTraces { traces, forbidden, tolerated } = judged;
        self.has_unseen_check = false;
        if !traces.made.is_empty() {
            self.made.push((result.command.clone(), traces.made));
        }
        if !tolerated.is_empty() {
            self.remarks.push(format!(
                "`{}` changes {}, which was put back: lock files, and what it changes without the work as well, do not count against it",
                result.command,
                name_files(&tolerated)
            ));
        }
        if !forbidden.is_empty() {
            let changed = format!("{} (put back)\n", name_files(&forbidden));
            let diff = masker.mask(&traces.diff).into_owned();
            if result.status.is_passed() {
                result.status = CheckStatus::ChangedWork;
                result.output = join_outputs(&[&result.output, &diff, &changed]);
            } else {
                // Its own last line says why it failed.
                let changed = format!("it also changed files of the work: {changed}");
                result.output = join_outputs(&[&changed, &diff, &result.output]);
            }
        }
        if !traces.parked.is_empty() {
            let remark = "what was there after the check is kept, in case the changes were yours";
            self.remarks.push(format!("{}: {remark}: {}", result.describe(), name_files(&traces.parked)));
        }
        Ok(())
    }

    /// Removes the files that checks have made.
    async fn finish(&mut self) -> Result<(), Fault> {
        let Some(snapshot) = self.snapshot.take() else { return Ok(()) };
        let has_unseen_check = self.has_unseen_check;
        let parked = run_git_work(move || {
            let mut snapshot = snapshot;
            // What a check that the user has stopped has left was not looked at. All its processes have ended, as after every check.
            if has_unseen_check {
                snapshot.restore_changes()?;
            }
            Ok(snapshot.finish()?)
        })
        .await?;
        for (command, paths) in std::mem::take(&mut self.made) {
            let place = match parked.as_slice() {
                [] => "removed".to_string(),
                parked => format!("moved to {}", name_files(parked)),
            };
            self.remarks.push(format!(
                "`{command}` made files that are not part of the work and that git does not ignore; they were {place}: {}",
                name_files(&paths)
            ));
        }
        Ok(())
    }

    async fn with_snapshot<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut WorkSnapshot) -> Result<T, WorkspaceError> + Send + 'static,
    ) -> Result<T, Fault> {
        let Some(mut snapshot) = self.snapshot.take() else {
            return Err(environment_fault("the work could not be compared with what it was before a check"));
        };
        let (snapshot, outcome) = run_git_work(move || {
            let outcome = work(&mut snapshot);
            Ok((snapshot, outcome))
        })
        .await?;
        self.snapshot = Some(snapshot);
        Ok(outcome?)
    }
}

/// Joins texts, each of which ends its line.
fn join_outputs(texts: &[&str]) -> String {
    let mut joined = String::new();
    for text in texts.iter().filter(|text| !text.is_empty()) {
        joined.push_str(text);
        if !text.ends_with('\n') {
            joined.push('\n');
        }
    }
    joined
}

/// Runs work on files and git on a thread of its own.
pub(super) async fn run_git_work<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let done = run_blocking(work).await;
    done.unwrap_or_else(|panicked| Err(environment_fault(panicked.to_string())))
}

/// Puts back what a check or hook has changed in the user's checkout. Returns what the user should know.
pub(super) async fn put_back_guarded(guarded_files: Option<GuardedFiles>) -> Vec<String> {
    let Some(guarded_files) = guarded_files else { return Vec::new() };
    let put_back = run_file_work(move || Ok(guarded_files.put_back())).await;
    put_back.unwrap_or_else(|cause| vec![format!("git's settings and hooks could not be compared: {cause}")])
}

/// Adds what the workspace lacks, if a check failed in it.
async fn add_differences(
    context: &EffectContext,
    mut outcome: Option<PerformedEffect<ChecksOutcome>>,
    tree_dir: PathBuf,
) -> Option<PerformedEffect<ChecksOutcome>> {
    let project_root = context.project.root().to_path_buf();
    // In place the workspace is the checkout itself.
    if let Some(PerformedEffect { reply: ChecksOutcome::Ran(report), .. }) = &mut outcome
        && report.list_failures().next().is_some()
        && tree_dir != project_root
    {
        let list_missing = move || Ok(list_missing_files(&project_root, &tree_dir));
        report.differences = run_file_work(list_missing).await.unwrap_or_default();
    }
    outcome
}

async fn create_copy(
    effect_context: &Arc<EffectContext>,
    workspace: &TaskWorkspace,
    subject: &Subject,
) -> io::Result<()> {
    let (context, workspace) = (effect_context.clone(), workspace.clone());
    let subject_files: Vec<String> = subject.file_paths().into_iter().map(String::from).collect();
    run_file_work(move || {
        workspace
            .create(&WorkspaceSource {
                project_root: context.project.tree_root(),
                subject_files: &subject_files,
                stored_tree: None,
                seed_paths: &context.seed_paths(),
            })
            .map(drop)
    })
    .await
}

pub(super) async fn run_all(
    context: &EffectContext,
    checks: &[CheckSpec],
    directory: &Path,
    mut guard: Option<&mut WorkGuard>,
) -> Option<PerformedEffect<ChecksOutcome>> {
    let (mut report, mut blobs) = (ChecksReport::default(), Vec::new());
    for check in checks {
        let timeout_ms = check.timeout_ms.unwrap_or(context.settings.tasks.check_timeout_ms);
        if let Some(guard) = guard.as_deref_mut() {
            guard.has_unseen_check = true;
        }
        match run_check_command(context, &check.command, directory.to_path_buf(), timeout_ms).await {
            Ok(finished) => {
                let (mut result, full_output) = finished.into_check_result(check.command.clone(), check.on_failure);
                if let Some(guard) = guard.as_deref_mut()
                    && let Err(fault) = guard.judge(&mut result, &context.masker).await
                {
                    return Some(ChecksOutcome::from(fault).into());
                }
                report.results.push(result);
                blobs.extend(full_output);
            }
            Err(CommandFailure::Stopped) => return None,
            Err(CommandFailure::Lost(cause)) => {
                return Some(failed_outcome(&format!("could not run `{}`: {cause}", check.command)));
            }
        }
    }
    Some(PerformedEffect { reply: ChecksOutcome::Ran(report), blobs })
}

fn failed_outcome(detail: &str) -> PerformedEffect<ChecksOutcome> {
    ChecksOutcome::from(environment_fault(detail)).into()
}

/// Lists what a directory has and a copy of it does not, top levels first. These are mostly files that git ignores, and they may be why a
/// check fails only in the copy.
pub(super) fn list_missing_files(original_dir: &Path, copied_dir: &Path) -> Vec<String> {
    let mut missing_files = Vec::new();
    let mut pending_dirs = VecDeque::from([String::new()]);
    let mut compared_count = 0;
    while let Some(directory) = pending_dirs.pop_front()
        && compared_count < MAX_COMPARED_FILES
    {
        let (original, copied) = (original_dir.join(&directory), copied_dir.join(&directory));
        missing_files.extend(missing_names(&original, &copied).into_iter().map(|name| format!("{directory}{name}")));
        for dir_entry in fs::read_dir(&original).into_iter().flatten().flatten() {
            compared_count += 1;
            let name = dir_entry.file_name().to_string_lossy().into_owned();
            let is_directory = dir_entry.file_type().is_ok_and(|file_type| file_type.is_dir());
            if is_directory && !is_own_name(&name) && copied.join(&name).is_dir() {
                pending_dirs.push_back(format!("{directory}{name}/"));
            }
        }
    }
    missing_files.sort();
    let excess_count = missing_files.len().saturating_sub(MAX_DIFFERENCES);
    missing_files.truncate(MAX_DIFFERENCES);
    if excess_count > 0 {
        missing_files.push(format!("{excess_count} more"));
    }
    missing_files
}

/// Returns the names in one directory that another one lacks; the names of directories end with a slash.
fn missing_names(original_dir: &Path, copied_dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for dir_entry in fs::read_dir(original_dir).into_iter().flatten().flatten() {
        let name = dir_entry.file_name().to_string_lossy().into_owned();
        if is_own_name(&name) || fs::symlink_metadata(copied_dir.join(&name)).is_ok() {
            continue;
        }
        let is_directory = dir_entry.file_type().is_ok_and(|file_type| file_type.is_dir());
        // An empty directory explains nothing.
        let is_empty = is_directory && fs::read_dir(dir_entry.path()).is_ok_and(|mut entries| entries.next().is_none());
        if !is_empty {
            names.push(if is_directory { format!("{name}/") } else { name });
        }
    }
    names
}

/// Whether a file belongs to git or to Tribunal, which are never copied.
fn is_own_name(name: &str) -> bool {
    name == ".git" || name == ".tribunal"
}

#[cfg(test)]
mod tests {
    use tribunal_workflows::{development::checks::FailureAction, review::order::ReviewOrder};

    use super::*;
    use crate::{effects::test_context::new_effect_context, project::Project};

    fn subject() -> Subject {
        Subject::from_path("plan.md", None)
    }

    fn run_copied(project_root: &Path, checks: Vec<CheckSpec>) -> PerformedEffect<ChecksOutcome> {
        let project = Project::from_root(project_root);
        project.prepare_home().unwrap();
        let context = Arc::new(new_effect_context(project, ReviewOrder::new(subject())));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let outcome = runtime.block_on(run_in_copy(&context, &Key::new("baseline"), &subject(), &checks)).unwrap();
        assert!(!context.project.task_dir(&context.run_id, &Key::new("baseline")).exists(), "the copy is gone");
        outcome
    }

    fn report_of(outcome: PerformedEffect<ChecksOutcome>) -> ChecksReport {
        match outcome.reply {
            ChecksOutcome::Ran(report) => report,
            other => panic!("{other:?}"),
        }
    }

    fn shell_check(line: &str) -> CheckSpec {
        CheckSpec::new(CommandLine::from_shell_line(line))
    }

    fn write_file(root: &Path, path: &str) {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), "x\n").unwrap();
    }

    #[test]
    fn all_checks_run_in_a_copy_and_leave_the_project_alone() {
        let directory = tempfile::tempdir().unwrap();
        write_file(directory.path(), "plan.md");
        let warning_check = CheckSpec { on_failure: FailureAction::Warn, ..shell_check("test -f made; exit 4") };
        let report = report_of(run_copied(
            directory.path(),
            vec![shell_check("echo no; exit 2"), shell_check("test -f plan.md && touch made"), warning_check],
        ));
        let statuses: Vec<CheckStatus> = report.results.iter().map(|result| result.status).collect();
        assert_eq!(
            statuses,
            [CheckStatus::Failed { exit_code: 2 }, CheckStatus::Passed, CheckStatus::Failed { exit_code: 4 }]
        );
        assert_eq!(report.results[0].output, "no\n");
        assert_eq!(report.results[2].on_failure, FailureAction::Warn);
        assert!(!directory.path().join("made").exists());
    }

    #[test]
    fn a_long_output_is_a_blob_of_the_reply() {
        let directory = tempfile::tempdir().unwrap();
        write_file(directory.path(), "plan.md");
        let outcome = run_copied(directory.path(), vec![shell_check("yes line | head -1000; echo the end")]);
        let blobs = outcome.blobs.clone();
        let report = report_of(outcome);
        let [blob] = blobs.try_into().unwrap();
        assert_eq!(report.results[0].log, Some(tribunal_engine::ids::Hash::digest_of(&blob)));
        assert!(report.results[0].output.ends_with("the end\n"));
    }

    #[test]
    fn what_the_copy_lacks_is_named_where_a_check_fails() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["plan.md", "node_modules/a/index.js", "web/node_modules/b.js", "web/app.js"] {
            write_file(directory.path(), path);
        }
        fs::create_dir(directory.path().join("target")).unwrap();
        let failing = report_of(run_copied(directory.path(), vec![shell_check("false")]));
        assert_eq!(failing.differences, ["node_modules/", "web/node_modules/"]);
        let passing = report_of(run_copied(directory.path(), vec![shell_check("true")]));
        assert_eq!(passing.differences, [""; 0]);
    }

    #[test]
    fn of_many_missing_files_ten_are_named() {
        let [original, copy] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        for number in 10..22 {
            write_file(original.path(), &format!("ignored-{number}"));
        }
        let missing_files = list_missing_files(original.path(), copy.path());
        assert_eq!((missing_files.len(), missing_files[0].as_str()), (11, "ignored-10"));
        assert_eq!(missing_files[10], "2 more");
    }
}
