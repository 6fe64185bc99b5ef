//! `tribunal review --story KEY`: reviews a story's file, and what changed since its work began against its
//! acceptance criteria.

use std::path::PathBuf;

use tribunal_bmad::{
    commands::{self, BmadStep},
    keys::BoardKey,
    project_files::ProjectFiles,
    story::{self, Story},
};
use tribunal_engine::text::{format_count, shell_quote};
use tribunal_runner::{Project, git::changes::ChangeScope, project::subject};

use super::{
    PreparedRun,
    change::{self, RequestedChange},
};
use crate::{
    bmad::{BmadProject, BoardLookup},
    context::CommandContext,
    messages::user_errors::UserError,
    settings::RunInputs,
};

/// What stories of late eras write as their baseline where there is no git.
const NO_GIT_BASELINE: &str = "NO_VCS";

/// Finds the file of a story: a path is taken as it is, anything else is looked up on the board.
pub(crate) fn find_story_file(typed_name: &str, context: &CommandContext) -> Result<PathBuf, UserError> {
    let typed_path = context.resolve_path(typed_name.as_ref());
    // A name with a slash is a path even if it is missing; the reader then reports that path.
    if typed_path.is_file() || typed_name.contains('/') {
        return Ok(PathBuf::from(typed_name));
    }
    let project = context.current_project();
    let bmad = BmadProject::read_project(&project);
    let explain_missing_file = |story_key: &str, story_path: &str| {
        let user_error = UserError::usage(format!("story {story_key} has no file yet ({story_path} not found)"));
        // Where BMAD can write the story, its command is the best advice.
        match commands::find_command(&bmad.layout, BmadStep::CreateStory, bmad.command_client(), &bmad.project_files)
            .to_prompt(story_key)
        {
            Some(prompt) => user_error.with_step(format!("have an agent write it: `{prompt}`")),
            None => user_error.with_step("name its file: `tribunal review --story FILE`"),
        }
    };
    // Without a board a story is known by its file alone.
    if bmad.board.is_none()
        && let Some(story_path) = bmad.find_file_by_name(typed_name)?
    {
        return Ok(project.root().join(story_path));
    }
    let BoardKey::Story(story_key) = bmad.find_key(typed_name)? else {
        return Err(
            UserError::usage(format!("`{typed_name}` is not a story")).with_step("list the stories: `tribunal status`")
        );
    };
    match bmad.find_story_file(&story_key) {
        Some(relative_path) => Ok(project.root().join(relative_path)),
        None => Err(explain_missing_file(&story_key.to_string(), &bmad.new_story_path(&story_key))),
    }
}

/// Prepares the runs that a story takes: one for its file, and those of its change.
pub(super) fn prepare_story_runs(
    typed_name: &str,
    paths: &[PathBuf],
    run_inputs: &RunInputs,
    context: &CommandContext,
) -> Result<Vec<PreparedRun>, UserError> {
    let story_file = find_story_file(typed_name, context)?;
    // A story is good enough without critical findings; the rest becomes follow-up work. A goal that the user typed takes
    // precedence.
    let goal_is_set = run_inputs.sources.flags.iter().any(|flag| flag.setting_path == "goal");
    let default_goal = (!goal_is_set).then(|| "critical-only".to_string());
    let run_inputs = run_inputs.clone().with_flag("--story", "goal", default_goal);
    let file_run = super::prepare_file_run(&story_file, None, &run_inputs, context)?;
    let relative_path = subject::relative_to_root(file_run.project.root(), &context.resolve_path(&story_file))?;
    let bmad = BmadProject::read_project(&file_run.project);
    let story_text = bmad.project_files.read_file(&relative_path).ok().flatten().unwrap_or_default();
    let story = story::read_story(&relative_path, &story_text);
    // Without criteria the review of the change would have nothing to check against.
    if story.criteria.is_empty() {
        return Err(UserError::usage(format!("{relative_path} has no acceptance criteria"))
            .with_reason("There is nothing to check its change against.")
            .with_step("add numbered criteria under a heading `Acceptance Criteria`")
            .with_step(format!("or review only the file: `tribunal review {}`", shell_quote(&relative_path))));
    }
    // Work on the next story may be in the tree already; the story's own list keeps it apart.
    let listed_files = list_story_files(&story, &file_run.project);
    let StoryBoundary { change_scope, narrowed_paths } =
        choose_boundary(&relative_path, story.baseline, paths, listed_files, context)?;
    let requested = RequestedChange {
        change_scope,
        paths: &narrowed_paths,
        story_file: Some(story_file),
        bookkeeping: bmad.bookkeeping_folders(),
        is_secondary: true,
    };
    let mut prepared_runs = vec![file_run];
    prepared_runs.extend(change::prepare_change_runs(&requested, &run_inputs, context)?);
    Ok(prepared_runs)
}

/// Lists the files that a story names as its own and that are there.
fn list_story_files(story: &Story, project: &Project) -> Vec<PathBuf> {
    story
        .files
        .iter()
        .map(|story_file| project.root().join(&story_file.text))
        // Paths come from a file that agents edit, so those that lead out of the project are dropped.
        .filter(|file_path| project.resolve_outside(file_path).is_none() && file_path.is_file())
        .collect()
}

/// Where the change of a story begins, and the paths to which it is narrowed.
struct StoryBoundary {
    change_scope: ChangeScope,
    narrowed_paths: Vec<PathBuf>,
}

/// Chooses what belongs to the change of a story, and tells the user.
fn choose_boundary(
    relative_path: &str,
    baseline: Option<String>,
    paths: &[PathBuf],
    listed_files: Vec<PathBuf>,
    context: &CommandContext,
) -> Result<StoryBoundary, UserError> {
    // The baseline is the best boundary; the list of files comes second, the whole work tree last.
    match baseline.filter(|baseline| baseline != NO_GIT_BASELINE) {
        Some(baseline) => {
            let notice = format!("reviewing all changes since {baseline}, the baseline of {relative_path}");
            context.print_note(&notice)?;
            Ok(StoryBoundary { change_scope: ChangeScope::WorkTreeSince(baseline), narrowed_paths: paths.to_vec() })
        }
        None if paths.is_empty() && !listed_files.is_empty() => {
            let file_count = format_count(u32::try_from(listed_files.len()).unwrap_or(u32::MAX), "file");
            let notice = format!(
                "{relative_path} has no baseline commit; reviewing the uncommitted changes in the {file_count} it lists"
            );
            context.print_note(&notice)?;
            Ok(StoryBoundary { change_scope: ChangeScope::WorkTree, narrowed_paths: listed_files })
        }
        None => {
            let notice = format!("{relative_path} has no baseline commit; reviewing the uncommitted changes");
            context.print_note(&notice)?;
            Ok(StoryBoundary { change_scope: ChangeScope::WorkTree, narrowed_paths: paths.to_vec() })
        }
    }
}
