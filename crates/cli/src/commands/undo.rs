//! `tribunal undo RUN[.FINDING]`: undoes what a run changed.

use std::{
    collections::BTreeMap,
    io::{Write, stdout},
    path::{Path, PathBuf},
};

use tribunal_core::ids::{FindingId, RunId};
use tribunal_report::escaped;
use tribunal_runner::{
    Project,
    landings::{Diff, FileDiff, What},
    undo::{Done, Plan, carry_out, listed, preview, reference},
};

use super::diff::{changed, counted, landed, nothing, run_of, split, write_diff};
use crate::{
    complaint::Complaint,
    context::{Context, find_run, quoted},
    documents::{self, ChangedFile, Undo},
};

/// Where copies of the files are kept as they were before the undo.
type Parked = BTreeMap<String, PathBuf>;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run, or a finding of it: RUN.F3, or F3 where only one run repaired such a one
    #[arg(value_name = "RUN[.FINDING]")]
    what: String,
    /// Do it; without this it is only shown
    #[arg(long)]
    yes: bool,
    /// Also what the same change repaired beside the finding
    #[arg(long)]
    together: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let (run, finding) = meant(&arguments.what, &project, context)?;
    // Without `--yes` nothing is locked and nothing is written.
    let (plan, parked) = if arguments.yes {
        let Done { plan, parked } = carry_out(&project, &run, finding, arguments.together)?;
        (plan, parked)
    } else {
        (preview(&project, &run, finding)?, Parked::new())
    };
    // The preview names the git reference, under which the user can look at each landing before deciding.
    let in_git = if arguments.yes { None } else { reference(&project, &run) };
    if context.json {
        let mut document = document(&plan, arguments.yes, &parked);
        document.reference = in_git;
        documents::print(&document)?;
        return Ok(0);
    }
    let mut out = stdout().lock();
    // Everything may have been undone before, which is a result and not an error.
    if plan.back.is_empty() {
        writeln!(out, "{}", escaped(&nothing(&run, finding, &plan.landings.of(finding)?)))?;
    } else if arguments.yes {
        write!(out, "{}", told(&plan, &parked, &project, context))?;
    } else {
        write_diff(&mut out, &context.answers, &plan.diff().text())?;
        write!(out, "{}", shown(&plan, in_git.as_deref(), context))?;
    }
    Ok(0)
}

fn meant(said: &str, project: &Project, context: &Context) -> Result<(RunId, Option<FindingId>), Complaint> {
    let none = || Complaint::usage("this project has no runs yet").todo("start one: tribunal review FILE");
    let store = context.journal(project)?.ok_or_else(none)?;
    // The name is split before any lookup: `F3` alone may be a finding of any run.
    match split(said) {
        (Some(run), finding) => Ok((find_run(&store, run)?, finding)),
        (None, Some(finding)) => Ok((run_of(&store, project, finding)?, Some(finding))),
        (None, None) => Err(Complaint::usage("nothing was named").todo("tribunal undo RUN")),
    }
}

fn document(plan: &Plan, done: bool, parked: &Parked) -> Undo {
    let diff = plan.diff();
    let parked = |path: &str| parked.get(path).map(|path| path.display().to_string());
    let file = |file: &FileDiff| ChangedFile { parked: parked(&file.path), ..changed(file) };
    Undo {
        schema: "tribunal.undo/1",
        run: plan.landings.run.clone(),
        finding: plan.finding,
        path: plan.path().map(String::from),
        // Nothing to undo means that nothing was done, even with `--yes`.
        done: done && !plan.back.is_empty(),
        landings: plan.back.iter().map(landed).collect(),
        findings: plan.repaired.clone(),
        diff: diff.text(),
        parked: plan.path().and_then(parked),
        files: diff.files.iter().map(file).collect(),
        reference: None,
        run_has_ended: plan.landings.is_finished(),
    }
}

/// Formats the preview, before anything is undone.
fn shown(plan: &Plan, in_git: Option<&str>, context: &Context) -> String {
    let changes = counted(plan.back.len(), "change");
    let diff = plan.diff();
    let mut lines = vec![match diff.files.is_empty() {
        true => format!("{changes} to take back; {} nothing of that any more", having(plan)),
        false => format!("{changes} to take back; this is what would be done to {}", named(plan, &diff)),
    }];
    // A single file is named in the first line already.
    if plan.files.len() > 1 {
        lines.extend(diff.files.iter().map(|file| match file.what {
            // The diff undoes the change, so a file that the run deleted is made again, and the other way round.
            What::Changed => format!("  {}", file.path),
            What::Made => format!("  {} (comes back)", file.path),
            What::Deleted => format!("  {} (goes)", file.path),
        }));
    }
    // Changes are undone as a whole, so findings that were repaired by the same one reopen together.
    let others = plan.others();
    if let (Some(finding), [_, ..]) = (plan.finding, others.as_slice()) {
        lines.push(format!("what repaired {finding} also repaired {}: they go together", listed(&others)));
    }
    lines.extend(consequence(plan, "would be"));
    lines.extend(in_git.map(|reference| format!("git has them, too: git log -p {reference}")));
    let what = plan.finding.map_or_else(String::new, |finding| format!(".{finding}"));
    let together = if others.is_empty() { "" } else { " --together" };
    let (program, run) = (&context.answers.program, &plan.landings.run);
    lines.push(format!("nothing was changed; to do it: {program} undo {run}{what}{together} --yes"));
    joined(&lines)
}

/// Formats the result, after the undo.
fn told(plan: &Plan, parked: &Parked, project: &Project, context: &Context) -> String {
    let changes = counted(plan.back.len(), "change");
    let diff = plan.diff();
    let mut lines = vec![match diff.files.is_empty() {
        true => {
            let were = if plan.files.len() > 1 { "were" } else { "was" };
            format!("took back {changes}; {} nothing of that any more, and {were} not changed", had(plan))
        }
        false => {
            format!("took back {changes} in {}; what else was changed since is as it was", named(plan, &diff))
        }
    }];
    for (path, parked) in parked {
        let [from, to] = [parked, Path::new(path)].map(|path| from_here(path, project, context));
        // A file name such as `-x` would be taken for an option of `cp`.
        let to = if to.starts_with('-') { format!("./{to}") } else { to };
        lines
            .push(format!("parked what stood there: {}; to have it again: cp {from} {to}", parked.display()));
    }
    lines.extend(consequence(plan, "will be"));
    let (program, run) = (&context.answers.program, &plan.landings.run);
    // A finished run cannot be resumed, so the next step is a new review.
    match (plan.landings.is_finished(), plan.landings.path()) {
        (true, Some(path)) => lines.push(format!("next: {program} review {}", quoted(path))),
        (true, None) => {}
        (false, _) => lines.push(format!("next: {program} resume {run}")),
    }
    joined(&lines)
}

/// Describes the files: `plan.md`, `3 files`.
fn named(plan: &Plan, diff: &Diff) -> String {
    plan.path().map_or_else(|| counted(diff.files.len(), "file"), String::from)
}

fn having(plan: &Plan) -> String {
    plan.path().map_or_else(|| "the files have".to_string(), |path| format!("{path} has"))
}

fn had(plan: &Plan) -> String {
    format!("{} had", plan.path().unwrap_or("the files"))
}

/// Describes what happens to the findings.
fn consequence(plan: &Plan, verb: &str) -> Option<String> {
    let (run, findings) = (&plan.landings.run, listed(&plan.repaired));
    match (plan.repaired.is_empty(), plan.landings.is_finished()) {
        (true, _) => None,
        // The journal of a finished run is never changed.
        (false, true) => Some(format!("run {run} has ended; its journal keeps {findings} as fixed")),
        (false, false) => Some(format!("{findings} {verb} open again when run {run} goes on")),
    }
}

/// Quotes a file of the project as a command in the working directory has to name it.
fn from_here(path: &Path, project: &Project, context: &Context) -> String {
    let is_here = context.path(Path::new("")).canonicalize().ok() == project.root().canonicalize().ok();
    let path = if is_here { path.to_path_buf() } else { project.root().join(path) };
    quoted(&path.to_string_lossy())
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| escaped(line) + "\n").collect()
}
