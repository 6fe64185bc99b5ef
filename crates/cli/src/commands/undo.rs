//! `tribunal undo RUN[.FINDING]`: takes back what a run changed.

use std::{
    io::{Write, stdout},
    path::Path,
};

use tribunal_core::ids::{FindingId, RunId};
use tribunal_report::escaped;
use tribunal_runner::{
    Project,
    undo::{Done, Plan, carry_out, listed, preview},
};

use super::diff::{counted, landed, nothing, run_of, split, write_diff};
use crate::{
    complaint::Complaint,
    context::{Context, find_run, quoted},
    documents::{self, Undo},
};

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
    let (plan, parked) = if arguments.yes {
        let Done { plan, parked } = carry_out(&project, &run, finding, arguments.together)?;
        (plan, parked)
    } else {
        (preview(&project, &run, finding)?, None)
    };
    if context.json {
        documents::print(&document(&plan, arguments.yes, parked.as_deref()))?;
        return Ok(0);
    }
    let mut out = stdout().lock();
    if plan.back.is_empty() {
        writeln!(out, "{}", escaped(&nothing(&run, finding, &plan.landings.of(finding)?)))?;
    } else if arguments.yes {
        write!(out, "{}", told(&plan, parked.as_deref(), &project, context))?;
    } else {
        write_diff(&mut out, &context.answers, &plan.diff().text)?;
        write!(out, "{}", shown(&plan, context))?;
    }
    Ok(0)
}

fn meant(said: &str, project: &Project, context: &Context) -> Result<(RunId, Option<FindingId>), Complaint> {
    let none = || Complaint::usage("this project has no runs yet").todo("start one: tribunal review FILE");
    let store = context.journal(project)?.ok_or_else(none)?;
    match split(said) {
        (Some(run), finding) => Ok((find_run(&store, run)?, finding)),
        (None, Some(finding)) => Ok((run_of(&store, project, finding)?, Some(finding))),
        (None, None) => Err(Complaint::usage("nothing was named").todo("tribunal undo RUN")),
    }
}

fn document(plan: &Plan, done: bool, parked: Option<&Path>) -> Undo {
    Undo {
        schema: "tribunal.undo/1",
        run: plan.landings.run.clone(),
        finding: plan.finding,
        path: plan.landings.path.clone(),
        done: done && !plan.back.is_empty(),
        landings: plan.back.iter().map(landed).collect(),
        findings: plan.repaired.clone(),
        diff: plan.diff().text,
        parked: parked.map(|path| path.display().to_string()),
        run_has_ended: plan.landings.is_finished(),
    }
}

/// Before it is done.
fn shown(plan: &Plan, context: &Context) -> String {
    let changes = counted(plan.back.len(), "change");
    let mut lines = vec![match plan.diff().text.is_empty() {
        true => format!("{changes} to take back; {} has nothing of that any more", plan.landings.path),
        false => format!("{changes} to take back; this is what would be done to {}", plan.landings.path),
    }];
    let others = plan.others();
    if let (Some(finding), [_, ..]) = (plan.finding, others.as_slice()) {
        lines.push(format!("what repaired {finding} also repaired {}: they go together", listed(&others)));
    }
    lines.extend(consequence(plan, "would be"));
    let what = plan.finding.map_or_else(String::new, |finding| format!(".{finding}"));
    let together = if others.is_empty() { "" } else { " --together" };
    let (program, run) = (&context.answers.program, &plan.landings.run);
    lines.push(format!("nothing was changed; to do it: {program} undo {run}{what}{together} --yes"));
    joined(&lines)
}

/// After it was done.
fn told(plan: &Plan, parked: Option<&Path>, project: &Project, context: &Context) -> String {
    let path = &plan.landings.path;
    let changes = counted(plan.back.len(), "change");
    let mut lines = Vec::new();
    match parked {
        Some(parked) => {
            lines.push(format!("took back {changes} in {path}; what else was changed since is as it was"));
            let [from, to] = [parked, Path::new(path)].map(|path| from_here(path, project, context));
            lines.push(format!(
                "parked what stood there: {}; to have it again: cp {from} {to}",
                parked.display()
            ));
        }
        None => lines
            .push(format!("took back {changes}; {path} had nothing of that any more, and was not changed")),
    }
    lines.extend(consequence(plan, "will be"));
    let (program, run) = (&context.answers.program, &plan.landings.run);
    lines.push(match plan.landings.is_finished() {
        true => format!("next: {program} review {}", quoted(path)),
        false => format!("next: {program} resume {run}"),
    });
    joined(&lines)
}

/// What becomes of the findings.
fn consequence(plan: &Plan, verb: &str) -> Option<String> {
    let (run, findings) = (&plan.landings.run, listed(&plan.repaired));
    match (plan.repaired.is_empty(), plan.landings.is_finished()) {
        (true, _) => None,
        (false, true) => Some(format!("run {run} has ended; its journal keeps {findings} as fixed")),
        (false, false) => Some(format!("{findings} {verb} open again when run {run} goes on")),
    }
}

/// A file of the project as a command typed in this folder has to name it.
fn from_here(path: &Path, project: &Project, context: &Context) -> String {
    let is_here = context.path(Path::new("")).canonicalize().ok() == project.root().canonicalize().ok();
    let path = if is_here { path.to_path_buf() } else { project.root().join(path) };
    quoted(&path.to_string_lossy())
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| escaped(line) + "\n").collect()
}
