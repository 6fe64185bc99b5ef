//! Turns a code change, as the user names it by flags, into runs, and reports everything that will not be reviewed.

use std::{
    fs,
    io::{Write, stderr},
    path::{Component, Path, PathBuf},
};

use tribunal_core::{
    subject::{Change, Subject},
    text::{count, sections},
};
use tribunal_report::escaped;
use tribunal_runner::{
    Project,
    changes::{self, Asked, ChangeError, Found, Part, Request, kilobytes},
    git::GitError,
    subject::{self, SubjectError},
};

use super::{Material, Prepared, check_templates};
use crate::{
    complaint::Complaint,
    context::{Context, quoted},
    settings::{Wishes, resolve},
};

/// At most this many reasons and names are shown one by one.
const MOST_SHOWN: usize = 5;

/// A change instead of files.
#[derive(Debug, clap::Args)]
pub(super) struct Choice {
    #[command(flatten)]
    which: Which,
    /// The story whose acceptance criteria a change has to meet, by key (1-2-log-in, 1.2) or file; without a change: its file
    /// and what changed since its work began
    #[arg(long, value_name = "KEY")]
    story: Option<String>,
}

impl Choice {
    /// Returns the change that was asked for; `None` if files or a story are meant.
    pub fn wanted<'a>(
        &self,
        paths: &'a [PathBuf],
        context: &Context,
    ) -> Result<Option<Wanted<'a>>, Complaint> {
        let Some(asked) = self.which.asked() else { return Ok(None) };
        let story = self.story.as_deref().map(|typed| super::story::file(typed, context)).transpose()?;
        Ok(Some(Wanted { asked, paths, story, bookkeeping: Vec::new(), beside: false }))
    }

    /// Returns the story that is named without a change.
    pub fn story(&self) -> Option<&str> {
        self.story.as_deref().filter(|_| self.which.asked().is_none())
    }
}

/// Which change; at most one of them.
#[derive(Debug, clap::Args)]
#[group(id = "change", multiple = false)]
struct Which {
    /// Review a code change: A..B, or A...B for what B has since they parted
    #[arg(long, value_name = "RANGE")]
    diff: Option<String>,
    /// Review what is staged
    #[arg(long)]
    staged: bool,
    /// Review what is not committed, new files included
    #[arg(long)]
    work_tree: bool,
    /// Review one commit
    #[arg(long, value_name = "REV")]
    commit: Option<String>,
}

impl Which {
    fn asked(&self) -> Option<Asked> {
        match self {
            // clap allows at most one of these flags.
            Which { diff: Some(range), .. } => Some(Asked::Range(range.clone())),
            Which { commit: Some(revision), .. } => Some(Asked::Commit(revision.clone())),
            Which { staged: true, .. } => Some(Asked::Staged),
            Which { work_tree: true, .. } => Some(Asked::WorkTree),
            _ => None,
        }
    }
}

/// A change, with the arguments that belong to it.
pub(super) struct Wanted<'a> {
    pub asked: Asked,
    pub paths: &'a [PathBuf],
    pub story: Option<PathBuf>,
    /// Directories that are not part of the change.
    pub bookkeeping: Vec<String>,
    /// Whether something else is reviewed anyway, so that the lack of a change is no error.
    pub beside: bool,
}

impl Wanted<'_> {
    /// Rebuilds the command line up to its paths, for suggestions.
    fn typed(&self) -> String {
        match &self.asked {
            Asked::Range(range) => format!("tribunal review --diff {}", quoted(range)),
            Asked::Commit(revision) => format!("tribunal review --commit {}", quoted(revision)),
            Asked::Staged => "tribunal review --staged".to_string(),
            Asked::WorkTree => "tribunal review --work-tree".to_string(),
            Asked::Since(revision) => format!("tribunal review --diff {}..", quoted(revision)),
        }
    }
}

/// Prepares the runs that the change takes; the list is empty if nothing changed.
pub(super) fn prepare(
    wanted: &Wanted<'_>,
    wishes: &Wishes,
    context: &Context,
) -> Result<Vec<Prepared>, Complaint> {
    let project = context.project();
    // Settings are resolved with an empty change first: the search for the real one depends on them.
    let resolved = resolve(project.root(), Subject::Change(Box::default()), wishes)?;
    check_templates(&project)?;
    let paths =
        wanted.paths.iter().map(|path| below(&project, context, path)).collect::<Result<Vec<_>, _>>()?;
    let request = Request {
        asked: wanted.asked.clone(),
        // The project's root as a path does not narrow anything.
        paths: paths.into_iter().filter(|path| !path.is_empty()).collect(),
        fix: resolved.settings.fix,
        reviews: resolved.settings.reviews.clone(),
        bookkeeping: wanted.bookkeeping.clone(),
        is_story: tribunal_bmad::is_story,
    };
    let mut found = match changes::find(project.root(), &request) {
        Err(ChangeError::Nothing { range }) => {
            return nothing(&range, wanted, context);
        }
        // The story's own file is still worth a review without a change.
        Err(error) if wanted.beside && is_none(&error) => {
            writeln!(stderr(), "[i] only its file is reviewed: {}", escaped(&error.to_string()))?;
            return Ok(Vec::new());
        }
        other => other.map_err(|error| refused(error, wanted))?,
    };
    // Paths are checked only now, because a deleted file is a valid path if the change deleted it.
    all_there(wanted, &request.paths, &found, context)?;
    found.change.story = story(wanted, &found, &project, context)?;
    // What is left out is reported before any money is spent.
    tell(&found)?;
    let (files, bytes) = (found.change.files.len(), found.bytes());
    let parts = found.parts().map_err(|error| refused(error, wanted))?;
    tell_parts(files, bytes, parts.len())?;
    // Each part gets a copy of the settings that differs only in its subject.
    let prepared = |Part { change, bytes }| {
        let mut resolved = resolved.clone();
        resolved.settings.subject = Subject::Change(Box::new(change));
        Prepared { project: project.clone(), resolved, material: Material::Diff(bytes) }
    };
    Ok(parts.into_iter().map(prepared).collect())
}

/// Rejects a path that neither exists nor is part of the change. It was mistyped, and what was meant would not be
/// reviewed.
fn all_there(
    wanted: &Wanted<'_>,
    paths: &[String],
    found: &Found,
    context: &Context,
) -> Result<(), Complaint> {
    let changed = found.change.files.iter().map(|file| file.path.as_str());
    // Files that are left out count as known, too: they are reported as such.
    let changed: Vec<&str> = changed.chain(found.change.left_out.iter().map(String::as_str)).collect();
    let missing = wanted.paths.iter().find(|path| fs::symlink_metadata(context.path(path)).is_err());
    let Some(missing) = missing else { return Ok(()) };
    let named = |path: &&String| context.path(missing).ends_with(Path::new(path));
    let part = paths
        .iter()
        .find(named)
        .is_some_and(|path| changed.iter().any(|file| file.starts_with(path.as_str())));
    if part { Ok(()) } else { Err(SubjectError::Missing { path: missing.display().to_string() }.into()) }
}

/// Returns whether the error means that there is no reviewable change, and not that something failed.
fn is_none(error: &ChangeError) -> bool {
    matches!(
        error,
        ChangeError::Unknown { .. }
            | ChangeError::Shallow { .. }
            | ChangeError::AllLeftOut { .. }
            | ChangeError::Git(GitError::NoRepository { .. } | GitError::NoGit)
    )
}

/// Reports that nothing changed. This is fine, unless a path was mistyped.
fn nothing(range: &str, wanted: &Wanted<'_>, context: &Context) -> Result<Vec<Prepared>, Complaint> {
    if let Some(path) = wanted.paths.iter().find(|path| fs::symlink_metadata(context.path(path)).is_err()) {
        return Err(SubjectError::Missing { path: path.display().to_string() }.into());
    }
    match wanted.asked {
        _ if wanted.beside => {
            writeln!(stderr(), "[i] only its file is reviewed: nothing changed in {}", escaped(range))?
        }
        Asked::Staged if wanted.paths.is_empty() => {
            writeln!(stderr(), "[i] nothing is staged; there is nothing to review")?
        }
        _ => writeln!(stderr(), "[i] nothing changed in {}; there is nothing to review", escaped(range))?,
    }
    Ok(Vec::new())
}

/// Makes a path relative to the project's root. The path need not exist: a change may have deleted it.
fn below(project: &Project, context: &Context, path: &Path) -> Result<String, Complaint> {
    let outside = || SubjectError::Outside {
        path: path.display().to_string(),
        root: project.root().display().to_string(),
    };
    let full = context.path(path);
    // The longest existing ancestor is resolved through links; the rest cannot be and is appended as it is.
    let (there, rest) = full
        .ancestors()
        .find_map(|part| Some((part.canonicalize().ok()?, full.strip_prefix(part).ok()?)))
        .ok_or_else(outside)?;
    // A `..` in the missing part could lead out of the project unnoticed.
    let plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
    let root = project.root().canonicalize()?;
    let relative = there.join(rest);
    let relative =
        relative.strip_prefix(&root).ok().filter(|_| plain).and_then(Path::to_str).ok_or_else(outside)?;
    Ok(relative.trim_end_matches('/').to_string())
}

/// Finds the story whose criteria apply: the named one, else the only one that the change edits.
fn story(
    wanted: &Wanted<'_>,
    found: &Found,
    project: &Project,
    context: &Context,
) -> Result<Option<String>, Complaint> {
    let Some(path) = &wanted.story else {
        return match found.stories.as_slice() {
            [] => Ok(None),
            [story] => {
                writeln!(stderr(), "[i] it has to meet the acceptance criteria of {}", escaped(story))?;
                Ok(Some(story.clone()))
            }
            // Guessing among several stories would hold the change against the wrong criteria.
            several => {
                let names = named(several);
                writeln!(
                    stderr(),
                    "[i] it changes several stories ({names}); to hold it against one: --story FILE"
                )?;
                Ok(None)
            }
        };
    };
    let relative = subject::relative(project.root(), &context.path(path))?;
    let text = subject::load(project.root(), &relative)?;
    if !tribunal_bmad::criteria(&text).is_empty() {
        return Ok(Some(relative));
    }
    // The headings are listed because the criteria are often there under another name.
    let all = sections(&text);
    let titles: Vec<&str> = all.iter().map(|section| section.title.as_str()).collect();
    let why = if titles.is_empty() {
        "It has no headings at all.".to_string()
    } else {
        format!("Its headings: {}", titles.join(" · "))
    };
    Err(Complaint::usage(format!("{relative} has no acceptance criteria"))
        .why(why)
        .todo("put them under a heading `Acceptance Criteria`, numbered")
        .todo("or leave out --story"))
}

fn named(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(MOST_SHOWN).map(|name| escaped(name).to_string()).collect();
    let more = names.len().saturating_sub(MOST_SHOWN);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

/// Prints what is not under review, before anything starts.
fn tell(found: &Found) -> Result<(), Complaint> {
    let Change { left_out, .. } = &found.change;
    for reason in left_out.iter().take(MOST_SHOWN) {
        writeln!(stderr(), "[i] left out: {}", escaped(reason))?;
    }
    if left_out.len() > MOST_SHOWN {
        writeln!(
            stderr(),
            "[i] left out: {} more; see them with --dry-run --json",
            left_out.len() - MOST_SHOWN
        )?;
    }
    Ok(())
}

fn tell_parts(files: usize, bytes: u64, parts: usize) -> Result<(), Complaint> {
    // A single part is the usual case and needs no remark.
    if parts > 1 {
        let files = count(u32::try_from(files).unwrap_or(u32::MAX), "file");
        let each = format!("{} files and {}", changes::MOST_FILES, kilobytes(changes::MOST_BYTES));
        writeln!(
            stderr(),
            "[i] {files} with {} of diff are {parts} parts of at most {each}",
            kilobytes(bytes)
        )?;
        writeln!(stderr(), "[i] each part is a run of its own; nobody looks across parts")?;
    }
    Ok(())
}

/// Explains why a change cannot be reviewed, with commands that would work.
fn refused(error: ChangeError, wanted: &Wanted<'_>) -> Complaint {
    let typed = wanted.typed();
    let steps: Vec<String> = match &error {
        ChangeError::TooBig { folders, .. } => folders
            .iter()
            // The suggestions narrow the change to one directory each.
            .map(|(folder, files)| format!("{typed} {}    ({files} files)", quoted(folder)))
            .collect(),
        ChangeError::Differs { .. } => vec![format!("review only: {typed} --no-fix")],
        _ => Vec::new(),
    };
    steps.into_iter().fold(Complaint::from(error), Complaint::todo)
}
