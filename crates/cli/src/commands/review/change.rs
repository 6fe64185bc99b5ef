//! Turns a code change, as the user names it by flags, into runs, and reports everything that will not be reviewed.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use tribunal_engine::text::{format_count, parse_sections, shell_quote};
use tribunal_report::escape_line;
use tribunal_runner::{
    Project,
    git::{
        GitError,
        changes::{self, ChangeError, ChangePart, ChangeRequest, ChangeScope, FoundChange, format_bytes},
    },
    project::subject::{self, SubjectError},
};
use tribunal_workflows::findings::subject::{CodeChange, Subject};

use super::{PreparedRun, ReviewMaterial};
use crate::{
    context::CommandContext,
    messages::user_errors::UserError,
    preflight::check_templates,
    settings::{RunInputs, resolve_settings},
};

/// At most this many reasons and names are shown one by one.
const MAX_SHOWN_NAMES: usize = 5;

/// A change instead of files.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeFlags {
    #[command(flatten)]
    which: ChangeSelector,
    /// Story whose acceptance criteria the change must meet, by key (1-2-log-in, 1.2) or file; without a change, review
    /// the story file and everything changed since its baseline
    #[arg(long, value_name = "KEY")]
    story: Option<String>,
}

impl ChangeFlags {
    /// Returns the change that was asked for; `None` if files or a story are meant.
    pub fn requested_change<'a>(
        &self,
        paths: &'a [PathBuf],
        context: &CommandContext,
    ) -> Result<Option<RequestedChange<'a>>, UserError> {
        let Some(change_scope) = self.which.to_change_scope() else { return Ok(None) };
        let story_file =
            self.story.as_deref().map(|story_name| super::story::find_story_file(story_name, context)).transpose()?;
        Ok(Some(RequestedChange { change_scope, paths, story_file, bookkeeping: Vec::new(), is_secondary: false }))
    }

    /// Returns the story that is named without a change.
    pub fn story_alone(&self) -> Option<&str> {
        self.story.as_deref().filter(|_| self.which.to_change_scope().is_none())
    }
}

/// Which change; at most one of them.
#[derive(Debug, clap::Args)]
#[group(id = "change", multiple = false)]
struct ChangeSelector {
    /// Review a code change: A..B, or A...B for what changed on B since it diverged from A
    #[arg(long, value_name = "RANGE")]
    diff: Option<String>,
    /// Review the staged changes
    #[arg(long)]
    staged: bool,
    /// Review all uncommitted changes, including new files
    #[arg(long)]
    work_tree: bool,
    /// Review a single commit
    #[arg(long, value_name = "REV")]
    commit: Option<String>,
}

impl ChangeSelector {
    fn to_change_scope(&self) -> Option<ChangeScope> {
        match self {
            // clap allows at most one of these flags.
            ChangeSelector { diff: Some(range), .. } => Some(ChangeScope::Range(range.clone())),
            ChangeSelector { commit: Some(revision), .. } => Some(ChangeScope::Commit(revision.clone())),
            ChangeSelector { staged: true, .. } => Some(ChangeScope::Staged),
            ChangeSelector { work_tree: true, .. } => Some(ChangeScope::WorkTree),
            _ => None,
        }
    }
}

/// A change, with the arguments that belong to it.
pub(super) struct RequestedChange<'a> {
    pub change_scope: ChangeScope,
    pub paths: &'a [PathBuf],
    pub story_file: Option<PathBuf>,
    /// Directories that are not part of the change.
    pub bookkeeping: Vec<String>,
    /// Whether something else is reviewed anyway, so that the lack of a change is no error.
    pub is_secondary: bool,
}

impl RequestedChange<'_> {
    /// Rebuilds the command line up to its paths, for suggestions.
    fn command_line(&self) -> String {
        match &self.change_scope {
            ChangeScope::Range(range) => format!("tribunal review --diff {}", shell_quote(range)),
            ChangeScope::Commit(revision) => format!("tribunal review --commit {}", shell_quote(revision)),
            ChangeScope::Staged => "tribunal review --staged".to_string(),
            ChangeScope::WorkTree => "tribunal review --work-tree".to_string(),
            ChangeScope::WorkTreeSince(revision) => {
                format!("tribunal review --diff {}..", shell_quote(revision))
            }
        }
    }
}

/// Prepares the runs that the change takes; the list is empty if nothing changed.
pub(super) fn prepare_change_runs(
    requested: &RequestedChange<'_>,
    run_inputs: &RunInputs,
    context: &CommandContext,
) -> Result<Vec<PreparedRun>, UserError> {
    let project = context.current_project();
    // Settings are resolved with an empty change first: the search for the real one depends on them.
    let resolved = resolve_settings(project.root(), Subject::Change(Box::default()), run_inputs)?;
    check_templates(&project)?;
    let relative_paths = requested
        .paths
        .iter()
        .map(|typed_path| relative_to_project(&project, context, typed_path))
        .collect::<Result<Vec<_>, _>>()?;
    let request = ChangeRequest {
        selector: requested.change_scope.clone(),
        // The project's root as a path does not narrow anything.
        path_filters: relative_paths.into_iter().filter(|relative_path| !relative_path.is_empty()).collect(),
        needs_fixing: resolved.plan.order.fix,
        reviews_dir: resolved.plan.settings.reviews.clone(),
        planning_dirs: requested.bookkeeping.clone(),
        is_story: tribunal_bmad::is_story_file,
    };
    let mut found_change = match changes::find_change(project.root(), &request) {
        Err(ChangeError::EmptyChange { range }) => {
            return report_no_change(&range, requested, context);
        }
        // The story's own file is still worth a review without a change.
        Err(change_error) if requested.is_secondary && is_unreviewable(&change_error) => {
            context.print_note(&format!("reviewing only the story file ({change_error})"))?;
            return Ok(Vec::new());
        }
        find_result => find_result.map_err(|change_error| explain_change_error(change_error, requested))?,
    };
    // Paths are checked only now, because a deleted file is a valid path if the change deleted it.
    check_paths_exist(requested, &request.path_filters, &found_change, context)?;
    found_change.change.story = find_story(requested, &found_change, &project, context)?;
    // What is left out is reported before any money is spent.
    print_left_out(&found_change, context)?;
    let (file_count, diff_bytes) = (found_change.change.files.len(), found_change.total_diff_bytes());
    let parts = found_change.into_parts().map_err(|change_error| explain_change_error(change_error, requested))?;
    if parts.len() > 1 {
        print_part_count(file_count, diff_bytes, parts.len(), context)?;
    }
    // Each part gets a copy of the settings that differs only in its subject.
    let prepare_part = |ChangePart { change, diff_bytes }| {
        let mut resolved = resolved.clone();
        resolved.plan.order.subject = Subject::Change(Box::new(change));
        PreparedRun { project: project.clone(), resolved, material: ReviewMaterial::Diff(diff_bytes) }
    };
    Ok(parts.into_iter().map(prepare_part).collect())
}

/// Rejects a path that neither exists nor is part of the change. It was mistyped, and what was meant would not be
/// reviewed.
fn check_paths_exist(
    requested: &RequestedChange<'_>,
    relative_paths: &[String],
    found_change: &FoundChange,
    context: &CommandContext,
) -> Result<(), UserError> {
    let changed_paths = found_change.change.files.iter().map(|changed_file| changed_file.path.as_str());
    // Files that are left out count as known, too: they are reported as such.
    let changed_paths: Vec<&str> =
        changed_paths.chain(found_change.change.left_out.iter().map(String::as_str)).collect();
    let missing_path = requested.paths.iter().find(|path| fs::symlink_metadata(context.resolve_path(path)).is_err());
    let Some(missing_path) = missing_path else { return Ok(()) };
    let names_missing = |path: &&String| context.resolve_path(missing_path).ends_with(Path::new(path));
    let is_in_change = relative_paths
        .iter()
        .find(names_missing)
        .is_some_and(|path| changed_paths.iter().any(|changed_path| changed_path.starts_with(path.as_str())));
    if is_in_change { Ok(()) } else { Err(SubjectError::Missing { path: missing_path.display().to_string() }.into()) }
}

/// Returns whether the error means that there is no reviewable change, and not that something failed.
fn is_unreviewable(change_error: &ChangeError) -> bool {
    matches!(
        change_error,
        ChangeError::UnknownRevision { .. }
            | ChangeError::ShallowHistory { .. }
            | ChangeError::NothingReviewable { .. }
            | ChangeError::Git(GitError::NoRepository { .. } | GitError::NotInstalled)
    )
}

/// Reports that nothing changed. This is fine, unless a path was mistyped.
fn report_no_change(
    range_text: &str,
    requested: &RequestedChange<'_>,
    context: &CommandContext,
) -> Result<Vec<PreparedRun>, UserError> {
    if let Some(missing_path) =
        requested.paths.iter().find(|typed_path| fs::symlink_metadata(context.resolve_path(typed_path)).is_err())
    {
        return Err(SubjectError::Missing { path: missing_path.display().to_string() }.into());
    }
    match requested.change_scope {
        _ if requested.is_secondary => {
            context.print_note(&format!("reviewing only the story file (no changes in {range_text})"))?
        }
        ChangeScope::Staged if requested.paths.is_empty() => {
            context.print_note("nothing is staged; nothing to review")?
        }
        _ => context.print_note(&format!("no changes in {range_text}; nothing to review"))?,
    }
    Ok(Vec::new())
}

/// Makes a path relative to the project's root. The path need not exist: a change may have deleted it.
fn relative_to_project(project: &Project, context: &CommandContext, typed_path: &Path) -> Result<String, UserError> {
    let outside_error =
        || SubjectError::Outside { path: typed_path.display().to_string(), root: project.root().display().to_string() };
    let full_path = context.resolve_path(typed_path);
    // The longest existing ancestor is resolved through links; the rest cannot be and is appended as it is.
    let (existing_part, missing_part) = full_path
        .ancestors()
        .find_map(|ancestor| Some((ancestor.canonicalize().ok()?, full_path.strip_prefix(ancestor).ok()?)))
        .ok_or_else(outside_error)?;
    // A `..` in the missing part could lead out of the project unnoticed.
    let is_plain = missing_part.components().all(|path_part| matches!(path_part, Component::Normal(_)));
    let project_root = project.root().canonicalize()?;
    let resolved_path = existing_part.join(missing_part);
    let relative_path = resolved_path
        .strip_prefix(&project_root)
        .ok()
        .filter(|_| is_plain)
        .and_then(Path::to_str)
        .ok_or_else(outside_error)?;
    Ok(relative_path.trim_end_matches('/').to_string())
}

/// Finds the story whose criteria apply: the named one, else the only one that the change edits.
fn find_story(
    requested: &RequestedChange<'_>,
    found_change: &FoundChange,
    project: &Project,
    context: &CommandContext,
) -> Result<Option<String>, UserError> {
    let Some(named_path) = &requested.story_file else {
        return match found_change.story_paths.as_slice() {
            [] => Ok(None),
            [story_path] => {
                context.print_note(&format!("checking against the acceptance criteria of {story_path}"))?;
                Ok(Some(story_path.clone()))
            }
            // Guessing among several stories would hold the change against the wrong criteria.
            candidates => {
                let candidate_names = format_names(candidates);
                context.print_note(&format!(
                    "the change touches several stories ({candidate_names}); choose one with `--story FILE`"
                ))?;
                Ok(None)
            }
        };
    };
    let relative_path = subject::relative_to_root(project.root(), &context.resolve_path(named_path))?;
    let story_text = subject::load_subject(project.root(), &relative_path)?;
    if !tribunal_bmad::read_criteria(&story_text).is_empty() {
        return Ok(Some(relative_path));
    }
    // The headings are listed because the criteria may be there under another name.
    let all_sections = parse_sections(&story_text);
    let titles: Vec<&str> = all_sections.iter().map(|section| section.title.as_str()).collect();
    let reason = if titles.is_empty() {
        "The file has no headings.".to_string()
    } else {
        format!("Headings in the file: {}", titles.join(" · "))
    };
    Err(UserError::usage(format!("{relative_path} has no acceptance criteria"))
        .with_reason(reason)
        .with_step("add numbered criteria under a heading `Acceptance Criteria`")
        .with_step("or leave out `--story`"))
}

fn format_names(names: &[String]) -> String {
    let shown_names: Vec<String> =
        names.iter().take(MAX_SHOWN_NAMES).map(|name| escape_line(name).to_string()).collect();
    let hidden_count = names.len().saturating_sub(MAX_SHOWN_NAMES);
    if hidden_count == 0 {
        shown_names.join(", ")
    } else {
        format!("{} and {hidden_count} more", shown_names.join(", "))
    }
}

/// Prints what is not under review, before anything starts.
fn print_left_out(found_change: &FoundChange, context: &CommandContext) -> Result<(), UserError> {
    let CodeChange { left_out, .. } = &found_change.change;
    for reason in left_out.iter().take(MAX_SHOWN_NAMES) {
        context.print_note(&format!("not reviewed: {reason}"))?;
    }
    if left_out.len() > MAX_SHOWN_NAMES {
        let hidden_count = left_out.len() - MAX_SHOWN_NAMES;
        context.print_note(&format!("not reviewed: {hidden_count} more (list them with `--dry-run --json`)"))?;
    }
    Ok(())
}

/// Prints into how many parts a change is split. A single part is the usual case and needs no remark.
fn print_part_count(
    file_count: usize,
    diff_bytes: u64,
    part_count: usize,
    context: &CommandContext,
) -> Result<(), UserError> {
    let files_text = format_count(u32::try_from(file_count).unwrap_or(u32::MAX), "file");
    let part_limit = format!("{} files and {}", changes::MAX_PART_FILES, format_bytes(changes::MAX_PART_BYTES));
    context.print_note(&format!(
        "splitting {files_text} with {} of diff into {part_count} parts of at most {part_limit}",
        format_bytes(diff_bytes)
    ))?;
    context.print_note("each part is a separate run; reviewers see only their part")
}

/// Explains why a change cannot be reviewed, with commands that would work.
fn explain_change_error(change_error: ChangeError, requested: &RequestedChange<'_>) -> UserError {
    let command_line = requested.command_line();
    let next_steps: Vec<String> = match &change_error {
        ChangeError::TooBig { folders, .. } => folders
            .iter()
            // The suggestions narrow the change to one directory each.
            .map(|(directory, file_count)| format!("`{command_line} {}` ({file_count} files)", shell_quote(directory)))
            .collect(),
        ChangeError::WorkTreeDiffers { .. } => vec![format!("review without fixing: `{command_line} --no-fix`")],
        _ => Vec::new(),
    };
    next_steps.into_iter().fold(UserError::from(change_error), UserError::with_step)
}
