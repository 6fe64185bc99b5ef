//! `tribunal story KEY`: shows a story's file, and makes small changes to it that keep every other byte: ticks of
//! tasks, files that were touched, follow-ups of a review.

use std::io::{Write, stderr, stdout};

use tribunal_bmad::{
    deferred::{self, NewItem},
    layout::Era,
    story::{
        self, Dialect, FollowUpKind,
        edit::{self, NewFollowUp, Refused},
    },
};
use tribunal_core::{
    finding::{Finding, Status},
    ids::RunId,
    subject::Subject,
    text::{count, fold_line},
    view::RunView,
};
use tribunal_report::escaped;
use tribunal_runner::{
    Project,
    board::{WriteError, edit as write, edit_or_make},
    subject,
};

use super::{board::unwritten, inspect, review};
use crate::{
    bmad::Bmad,
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents::{self, StoryEdit},
};

/// The ledger of deferred work, in the directory of the stories.
const LEDGER: &str = "deferred-work.md";

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A story's key (1-2-log-in), number (1.2) or file
    story: String,
    /// Tick a task, by its number: 2, or 2.1 for a subtask
    #[arg(long, value_name = "TASK")]
    tick: Vec<String>,
    /// Take a tick away
    #[arg(long, value_name = "TASK")]
    untick: Vec<String>,
    /// Add a file to the list of files
    #[arg(long, value_name = "PATH")]
    add_file: Vec<String>,
    /// Tick what a review left, by its line: see `tribunal story KEY`
    #[arg(long, value_name = "LINE")]
    tick_follow_up: Vec<usize>,
    /// Write what this run left open or deferred into the story, as its review's follow-ups
    #[arg(long, value_name = "RUN")]
    follow_ups: Option<String>,
    /// Show what would change; write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let file = review::story_file(&arguments.story, context)?;
    // The list is read by agents and by `review --story`, so a path out of the project never gets in.
    if let Some(odd) = arguments.add_file.iter().find(|path| is_outside(path)) {
        return Err(Complaint::usage(format!("{odd} is no path inside the project"))
            .todo("write it relative to the project's root"));
    }
    let changes = !arguments.tick.is_empty()
        || !arguments.untick.is_empty()
        || !arguments.add_file.is_empty()
        || !arguments.tick_follow_up.is_empty()
        || arguments.follow_ups.is_some();
    if !changes {
        return inspect::story(&file, context);
    }
    // The file may belong to another project than the working directory.
    let project = context.project_of(&context.path(&file));
    let path = subject::relative(project.root(), &context.path(&file))?;
    let left = match &arguments.follow_ups {
        Some(run) => Some(left_by(&project, run, &path, context)?),
        None => None,
    };
    let bmad = Bmad::of(&project);
    // All edits are made to one text under one lock: either all of them are written, or none.
    let done = write(&project, &path, |text| {
        let Edited { text: new, told } = change(text, arguments, left.as_ref(), bmad.layout.era)?;
        // An edit that changes nothing writes nothing, so a dry run returns the old text and keeps the notes.
        Ok((if arguments.dry_run { text.to_string() } else { new }, told))
    });
    let mut told = done.map_err(|error| complaint(&path, error))?;
    // The ledger comes last: a failure there leaves the story in a good state, and the command can be repeated.
    if let Some(left) = left.as_ref().filter(|_| has_ledger(&bmad)) {
        told.extend(ledger(&project, &bmad, &left.deferred_from(&path), arguments.dry_run)?);
    }
    if context.json {
        let schema = "tribunal.story/1";
        documents::print(&StoryEdit { schema, path, changes: told, dry_run: arguments.dry_run })?;
        return Ok(0);
    }
    let mark = if arguments.dry_run { "would be" } else { "✓" };
    for line in &told {
        writeln!(stdout(), "{}", escaped(&format!("{mark} {line}")))?;
    }
    // The two reasons for no change are told apart, since only one of them may be a mistake.
    if told.is_empty() && left.as_ref().is_some_and(|left| left.findings.is_empty()) {
        writeln!(stdout(), "that run left nothing to do")?;
    } else if told.is_empty() {
        writeln!(stdout(), "{}", escaped(&format!("{path} says so already")))?;
    }
    Ok(0)
}

fn is_outside(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..")
}

/// What a run left open or deferred.
struct Left {
    run: RunId,
    findings: Vec<Finding>,
}

fn left_by(project: &Project, run: &str, path: &str, context: &Context) -> Result<Left, Complaint> {
    let (store, run) = context.run_meant(project, Some(run))?;
    let view = RunView::of(&store.entries(&run, 0)?);
    let subject = view.settings.as_ref().map(|settings| &settings.subject);
    let is_its_own = subject.is_some_and(|subject| match subject.change() {
        Some(change) => change.story.as_deref() == Some(path),
        None => subject.files().contains(&path),
    });
    // This is only a warning: findings about another file may still be this story's work.
    if !is_its_own {
        let what = subject.map(Subject::title).unwrap_or_default();
        writeln!(stderr(), "[W] {}", escaped(&format!("run {run} reviewed {what}, and not {path}")))?;
    }
    let is_left = |finding: &Finding| !matches!(finding.status, Status::Fixed | Status::Dismissed { .. });
    Ok(Left { run, findings: view.findings.into_values().filter(is_left).collect() })
}

/// A story's new text, with notes of what is different in it.
struct Edited {
    text: String,
    told: Vec<String>,
}

fn change(
    text: &str,
    arguments: &Arguments,
    left: Option<&Left>,
    era: Option<Era>,
) -> Result<Edited, Refused> {
    let (mut text, mut told) = (text.to_string(), Vec::new());
    // Edits that change nothing get no note, so repeating the command reports nothing new.
    let mut step = |new: String, text: &mut String, what: String| {
        if new != *text {
            told.push(what);
            *text = new;
        }
    };
    let ticks = arguments.tick.iter().map(|task| (task, true));
    for (task, done) in ticks.chain(arguments.untick.iter().map(|task| (task, false))) {
        let new = edit::tick(&text, task, done)?;
        let what = format!("task {task} {}", if done { "ticked" } else { "unticked" });
        step(new, &mut text, what);
    }
    // Lines are given as they were displayed, which works because ticking moves no line.
    for line in &arguments.tick_follow_up {
        let new = edit::tick_follow_up(&text, *line, true)?;
        step(new, &mut text, format!("follow-up of line {line} ticked"));
    }
    for file in &arguments.add_file {
        let new = edit::add_files(&text, &[file])?;
        step(new, &mut text, format!("{file} added to the list of files"));
    }
    if let Some(left) = left {
        let dialect = dialect(&text, era);
        // Findings are added one by one: each gets a note of its own, and those that are there already get none.
        for finding in &left.findings {
            let new = edit::add_follow_ups(&text, dialect, &[follow_up(finding, dialect)])?;
            step(new, &mut text, format!("{} left to do: {}", finding.id, fold_line(&finding.description)));
        }
    }
    Ok(Edited { text, told })
}

/// Chooses the dialect that the file uses already, else that of its era.
fn dialect(text: &str, era: Option<Era>) -> Dialect {
    let used = story::read("", text).follow_ups.last().map(|item| item.dialect);
    used.unwrap_or(match era {
        Some(Era::A | Era::B | Era::C1) => Dialect::AiReview,
        _ => Dialect::Findings,
    })
}

fn follow_up(finding: &Finding, dialect: Dialect) -> NewFollowUp {
    let deferred = matches!(finding.status, Status::Deferred { .. });
    let kind = match (dialect, &finding.status) {
        // The older dialect knows only severities; the newer one says who has to act.
        (Dialect::AiReview, _) => FollowUpKind::Severity(finding.severity),
        (Dialect::Findings, Status::Blocked { .. }) => FollowUpKind::Decision,
        (Dialect::Findings, Status::Deferred { .. }) => FollowUpKind::Defer,
        (Dialect::Findings, _) => FollowUpKind::Patch,
    };
    let place = finding.place.as_ref().map(|place| format!("{}:{}", place.file, place.line));
    // In the newer dialect, deferred findings are ticked, because they are no open task of this story.
    let done = deferred && dialect == Dialect::Findings;
    NewFollowUp { kind, text: fold_line(&finding.description), place, done }
}

/// Returns whether the project's BMAD has a ledger, which exists from 6.2 on.
fn has_ledger(bmad: &Bmad) -> bool {
    bmad.layout.era.is_some_and(|era| era >= Era::C2)
}

impl Left {
    /// Returns the deferred findings as items of the ledger.
    fn deferred_from(&self, story: &str) -> Vec<NewItem> {
        let run = &self.run;
        let deferred =
            self.findings.iter().filter(|finding| matches!(finding.status, Status::Deferred { .. }));
        let item = |finding: &Finding| NewItem {
            source: story.to_string(),
            summary: fold_line(&finding.description),
            evidence: match &finding.place {
                Some(place) => format!("{}:{}, finding {} of run {run}", place.file, place.line, finding.id),
                None => format!("finding {} of run {run}", finding.id),
            },
        };
        deferred.map(item).collect()
    }
}

/// Adds deferred findings to the ledger.
fn ledger(
    project: &Project,
    bmad: &Bmad,
    items: &[NewItem],
    dry_run: bool,
) -> Result<Option<String>, Complaint> {
    let path = format!("{}/{LEDGER}", bmad.config.folders.implementation);
    // Without a configured directory the path would start at the root of the file system.
    let path = path.trim_start_matches('/');
    let done = edit_or_make(project, path, |text| {
        let new = deferred::add(text, items);
        // The ledger skips what it has already, so the number of items says what was really added.
        let added = deferred::read(&new).items.len() - deferred::read(text).items.len();
        Ok::<_, Refused>((if dry_run { text.to_string() } else { new }, added))
    });
    let added = done.map_err(|error| complaint(path, error))?;
    let what =
        || format!("{} kept in {path}", count(u32::try_from(added).unwrap_or(u32::MAX), "deferred finding"));
    Ok((added > 0).then(what))
}

fn complaint(path: &str, error: WriteError<Refused>) -> Complaint {
    match error {
        WriteError::Refused { why, .. } => {
            Complaint::new(NEGATIVE, format!("{path} was not changed: {}", why.why)).todo(why.todo)
        }
        other => unwritten(&other),
    }
}
