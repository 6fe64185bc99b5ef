//! Turns directories and quoted patterns into the files that are in them, and tells the user how many there are.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use tribunal_engine::text::{format_count, shell_quote};
use tribunal_runner::project::{
    document_search::{PathPattern, SearchError, list_documents, list_matching_files},
    subject,
};
use tribunal_workflows::findings::subject::Subject;

use crate::{
    bmad::BmadProject,
    context::CommandContext,
    messages::user_errors::{EXIT_ENVIRONMENT, UserError},
    settings::{RunInputs, resolve_settings},
};

/// So many files are reviewed without a question; each of them costs as much as a file that is named.
const MAX_FOUND_FILES: usize = 20;
/// At most this many directories are suggested.
const MAX_SUGGESTIONS: usize = 5;

/// What was typed instead of files, and what was found there.
struct SearchResult<'a> {
    typed_path: &'a Path,
    /// The files, relative to the directory that was searched.
    found_files: Vec<String>,
    is_directory: bool,
}

/// Replaces directories and patterns by their files. Other paths stay as they are typed, even if they do not exist.
pub(super) fn expand_paths(
    typed_paths: &[PathBuf],
    allows_many: bool,
    run_inputs: &RunInputs,
    context: &CommandContext,
) -> Result<Vec<PathBuf>, UserError> {
    let mut file_paths = Vec::new();
    let mut search_results = Vec::new();
    for typed_path in typed_paths {
        let full_path = context.resolve_path(typed_path);
        // A file whose name looks like a pattern is meant as a file.
        match fs::metadata(&full_path) {
            Ok(metadata) if metadata.is_dir() => {
                let found_files = list_documents(&full_path).map_err(explain_search_error)?;
                let found_files = keep_reviewable(&full_path, found_files, run_inputs, context)?;
                file_paths.extend(found_files.iter().map(|found_file| full_path.join(found_file)));
                search_results.push(SearchResult { typed_path, found_files, is_directory: true });
            }
            Err(_) if typed_path.to_str().is_some_and(PathPattern::is_pattern) => {
                let pattern = PathPattern::parse(&typed_path.to_string_lossy()).map_err(explain_search_error)?;
                let base_dir = context.resolve_path(pattern.base_dir());
                // A base directory that does not exist has no matching files.
                let found_files = match base_dir.is_dir() {
                    true => list_matching_files(&pattern, &base_dir).map_err(explain_search_error)?,
                    false => Vec::new(),
                };
                let found_files = keep_reviewable(&base_dir, found_files, run_inputs, context)?;
                file_paths.extend(found_files.iter().map(|found_file| base_dir.join(found_file)));
                search_results.push(SearchResult { typed_path, found_files, is_directory: false });
            }
            _ => file_paths.push(typed_path.clone()),
        }
    }
    if let Some(empty_result) = search_results.iter().find(|search_result| search_result.found_files.is_empty()) {
        return Err(explain_empty(empty_result));
    }
    let found_count: usize = search_results.iter().map(|search_result| search_result.found_files.len()).sum();
    if found_count > MAX_FOUND_FILES && !allows_many {
        return Err(explain_too_many(found_count, &search_results));
    }
    for search_result in &search_results {
        context.print_note(&search_result.describe_found())?;
    }
    Ok(file_paths)
}

impl SearchResult<'_> {
    fn describe_found(&self) -> String {
        let found_count = u32::try_from(self.found_files.len()).unwrap_or(u32::MAX);
        let typed_text = self.typed_path.display();
        match self.is_directory {
            true => format!("found {} in {typed_text}", format_count(found_count, "document")),
            false => format!("{} matched by `{typed_text}`", format_count(found_count, "file")),
        }
    }
}

/// Leaves out what Tribunal and BMAD wrote for themselves, and tells about files that cannot be reviewed.
fn keep_reviewable(
    searched_dir: &Path,
    found_files: Vec<String>,
    run_inputs: &RunInputs,
    context: &CommandContext,
) -> Result<Vec<String>, UserError> {
    let Some(first_file) = found_files.first() else { return Ok(Vec::new()) };
    // All found files belong to the project of the directory, unless there are projects below it.
    let project = context.project_of_path(&searched_dir.join("any"));
    let placeholder = Subject::from_path(first_file, None);
    let settings_folders = resolve_settings(project.root(), placeholder, run_inputs)?.plan.settings.own_folders();
    let own_folders = {
        let bmad_folder = BmadProject::read_project(&project).layout.root;
        let mut own_folders = settings_folders.list_all().map(PathBuf::from).to_vec();
        own_folders.extend(bmad_folder.map(PathBuf::from));
        own_folders
    };
    let searched_folder = subject::relative_to_root(project.root(), searched_dir)?;
    let mut reviewable_files = Vec::new();
    for found_file in found_files {
        let relative_path = Path::new(&searched_folder).join(&found_file);
        // A user who names such a directory itself wants what is in it.
        let is_own_file = own_folders.iter().any(|own_folder| {
            relative_path.starts_with(own_folder) && !Path::new(&searched_folder).starts_with(own_folder)
        });
        let is_report = settings_folders.is_report(&relative_path.to_string_lossy())
            && !Path::new(&searched_folder).starts_with(&settings_folders.reports);
        if is_own_file || is_report {
            continue;
        }
        match subject::load_subject(project.root(), &relative_path.to_string_lossy()) {
            Ok(_) => reviewable_files.push(found_file),
            // One empty or huge file must not keep the others from being reviewed.
            Err(subject_error) => context.print_note(&format!("not reviewed: {subject_error}"))?,
        }
    }
    Ok(reviewable_files)
}

fn explain_search_error(search_error: SearchError) -> UserError {
    let message = search_error.to_string();
    match search_error {
        SearchError::Unreadable { path, .. } => UserError::new(EXIT_ENVIRONMENT, message)
            .with_step(format!("check its permissions: `ls -ld {}`", shell_quote(&path.to_string_lossy()))),
        SearchError::TooManyFiles { .. } => UserError::usage(message).with_step("pass a directory below it, or files"),
        SearchError::InvalidPattern { .. } => {
            UserError::usage(message).with_step("a pattern looks like 'docs/*.md' or 'docs/**/*.md'")
        }
    }
}

fn explain_empty(search_result: &SearchResult<'_>) -> UserError {
    let typed_text = search_result.typed_path.display();
    if search_result.is_directory {
        UserError::usage(format!("no documents to review in {typed_text}"))
            .with_reason("Documents are Markdown files. Hidden files and files that git ignores are left out.")
            .with_step(format!("pass other files by name or pattern: `tribunal review '{typed_text}/*.txt'`"))
    } else {
        UserError::usage(format!("no files match `{typed_text}`"))
            .with_reason("Hidden files and files that git ignores are left out.")
            .with_step("check the pattern; it is relative to the current directory")
    }
}

/// Names the directories that have fewer files, and the flag that reviews all of them.
fn explain_too_many(found_count: usize, search_results: &[SearchResult<'_>]) -> UserError {
    let mut files_by_directory: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for search_result in search_results.iter().filter(|search_result| search_result.is_directory) {
        for (first_part, _) in search_result.found_files.iter().filter_map(|found_file| found_file.split_once('/')) {
            *files_by_directory.entry(search_result.typed_path.join(first_part)).or_default() += 1;
        }
    }
    let user_error = UserError::usage(format!(
        "found {found_count} documents; more than {MAX_FOUND_FILES} are reviewed only with `--yes`"
    ))
    .with_reason("Every document is reviewed in a run of its own, with its own agents and costs. Nothing was started.");
    let mut directories: Vec<(PathBuf, usize)> = files_by_directory
        .into_iter()
        .filter(|(_, file_count)| *file_count <= MAX_FOUND_FILES && *file_count < found_count)
        .collect();
    // Larger directories are more likely to be meant.
    directories.sort_by_key(|(_, file_count)| std::cmp::Reverse(*file_count));
    let user_error = match directories.is_empty() {
        true => user_error.with_step("narrow it with a pattern: `tribunal review 'docs/guide-*.md'`"),
        false => directories.iter().take(MAX_SUGGESTIONS).fold(user_error, |user_error, (directory, file_count)| {
            let documents_text = format_count(u32::try_from(*file_count).unwrap_or(u32::MAX), "document");
            let quoted_dir = shell_quote(&directory.to_string_lossy());
            user_error.with_step(format!("review a part: `tribunal review {quoted_dir}` ({documents_text})"))
        }),
    };
    user_error.with_step("or review all of them: add `--yes`")
}
