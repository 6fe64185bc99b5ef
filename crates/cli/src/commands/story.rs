//! `tribunal story KEY`: what a story's file says, and small changes to it that keep every other byte: boxes of tasks, files
//! that were touched, what a review leaves to do.

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

/// The ledger of what is left for later, in the folder of the stories.
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
    let project = context.project_of(&context.path(&file));
    let path = subject::relative(project.root(), &context.path(&file))?;
    let left = match &arguments.follow_ups {
        Some(run) => Some(left_by(&project, run, &path, context)?),
        None => None,
    };
    let bmad = Bmad::of(&project);
    let done = write(&project, &path, |text| {
        let Edited { text: new, told } = change(text, arguments, left.as_ref(), bmad.layout.era)?;
        Ok((if arguments.dry_run { text.to_string() } else { new }, told))
    });
    let mut told = done.map_err(|error| complaint(&path, error))?;
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
    if !is_its_own {
        let what = subject.map(Subject::title).unwrap_or_default();
        writeln!(stderr(), "[W] {}", escaped(&format!("run {run} reviewed {what}, and not {path}")))?;
    }
    let is_left = |finding: &Finding| !matches!(finding.status, Status::Fixed | Status::Dismissed { .. });
    Ok(Left { run, findings: view.findings.into_values().filter(is_left).collect() })
}

/// A story's new text, and what is different in it.
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
    // A tick moves no line.
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
        for finding in &left.findings {
            let new = edit::add_follow_ups(&text, dialect, &[follow_up(finding, dialect)])?;
            step(new, &mut text, format!("{} left to do: {}", finding.id, fold_line(&finding.description)));
        }
    }
    Ok(Edited { text, told })
}

/// The one the file uses; else that of its era.
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
        (Dialect::AiReview, _) => FollowUpKind::Severity(finding.severity),
        (Dialect::Findings, Status::Blocked { .. }) => FollowUpKind::Decision,
        (Dialect::Findings, Status::Deferred { .. }) => FollowUpKind::Defer,
        (Dialect::Findings, _) => FollowUpKind::Patch,
    };
    let place = finding.place.as_ref().map(|place| format!("{}:{}", place.file, place.line));
    // What is deferred is nobody's task in the newer dialect.
    let done = deferred && dialect == Dialect::Findings;
    NewFollowUp { kind, text: fold_line(&finding.description), place, done }
}

/// From 6.2 on there is one.
fn has_ledger(bmad: &Bmad) -> bool {
    bmad.layout.era.is_some_and(|era| era >= Era::C2)
}

impl Left {
    /// What is deferred of it, as the ledger has it.
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

/// What is deferred is kept in the ledger as well.
fn ledger(
    project: &Project,
    bmad: &Bmad,
    items: &[NewItem],
    dry_run: bool,
) -> Result<Option<String>, Complaint> {
    let path = format!("{}/{LEDGER}", bmad.config.folders.implementation);
    let path = path.trim_start_matches('/');
    let done = edit_or_make(project, path, |text| {
        let new = deferred::add(text, items);
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
