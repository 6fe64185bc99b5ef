//! `tribunal validate [--for WORKFLOW]`: checks whether the project's documents, board, stories and settings fit
//! together, and whether a step of BMAD's method can be run. It only reads. Problems are reported with their position
//! and a remedy.

use std::io::{Write, stdout};

use tribunal_bmad::{
    check::{self, Input, LookedAt, Report},
    commands::Step,
    documents,
    problem::{Problem, Weight},
    shelf::{self, Shelf},
};
use tribunal_report::escaped;

use crate::{
    bmad::{Bmad, draw},
    complaint::{Complaint, NEGATIVE},
    context::Context,
    documents::{Validation, print},
    settings::{self, Manner, nearest},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Also say whether this step can be run: prd, architecture, epics, readiness, sprint-planning, dev-story, …
    #[arg(long = "for", value_name = "WORKFLOW")]
    step: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let step = arguments.step.as_deref().map(named).transpose()?;
    let bmad = Bmad::of(&context.project());
    let found = documents::find(&bmad.shelf, &bmad.config.folders);
    let board_path = bmad.board_path();
    let input = Input {
        shelf: &bmad.shelf,
        layout: &bmad.layout,
        config: &bmad.config,
        board: bmad.board.as_ref(),
        board_path: &board_path,
        documents: &found,
    };
    // `check_project` sees BMAD's files only; problems of reading them and of the settings are added here.
    let mut report = check::run(&input, step);
    report.problems.extend_from_slice(&bmad.problems);
    report.problems.extend(settings_problems(&bmad.shelf));
    check::sort(&mut report.problems);
    // An added error makes a project unready even if the step itself would be possible.
    report.ready &= report.problems.iter().all(|problem| problem.weight < Weight::Error);
    let code = if report.ready { 0 } else { NEGATIVE };
    if context.json {
        let step = step.map(Step::as_str);
        print(&Validation { schema: "tribunal.validate/1", step, report })?;
    } else {
        let mut out = stdout().lock();
        out.write_all(shown(&report, step, &context.answers.program).as_bytes())?;
    }
    Ok(code)
}

fn named(typed: &str) -> Result<Step, Complaint> {
    Step::named(typed).ok_or_else(|| {
        let all = Step::ALL.map(Step::as_str);
        let complaint = Complaint::usage(format!("there is no workflow `{typed}`"))
            .why(format!("There are {}.", all.join(", ")));
        match nearest(typed, &all) {
            Some(near) => complaint.todo(format!("did you mean {near}?")),
            None => complaint,
        }
    })
}

/// Finds what is wrong in the project's settings, as `tribunal inspect settings` explains it.
fn settings_problems(shelf: &dyn Shelf) -> Vec<Problem> {
    let mut problems = Vec::new();
    // BMAD's file has keys of its own, which are no mistakes there.
    for (path, manner) in [(settings::FILE, Manner::Strict), (tribunal_bmad::CONFIG_PATH, Manner::Lenient)] {
        let Some(text) = shelf::read(shelf, path, &mut problems) else { continue };
        for found in settings::read(path, &text, manner).problems {
            let mut problem = Problem::error("settings", path, found.what).why("no run starts with it");
            problem.line = found.line;
            problem.todo = found.hint.unwrap_or_default();
            problems.push(problem);
        }
    }
    problems
}

fn shown(report: &Report, step: Option<Step>, program: &str) -> String {
    let mut out = format!("{}\n", escaped(&looked_at(&report.looked_at)));
    for problem in &report.problems {
        out.push_str(&draw(problem));
    }
    for missing in &report.missing {
        out.push_str(&escaped(&format!("[!] missing: {}, expected at {}", missing.document, missing.path)));
        out.push('\n');
    }
    out.push_str(&format!("{}\n", verdict(report, step)));
    // This is advice only: the user may run the step in spite of it.
    if let (Some(suggestion), Some(step)) = (&report.suggestion, step) {
        out.push_str(&format!("    {}\n", escaped(&suggestion.why)));
        out.push_str(&format!("    [1] run {} first: {}\n", suggestion.step, escaped(&suggestion.command)));
        out.push_str(&format!("        then again: {program} validate --for {step}\n"));
        out.push_str("    [2] continue anyway, if you know better\n    [3] abort, and leave it as it is\n");
    }
    out
}

fn looked_at(looked: &LookedAt) -> String {
    if looked.is_nothing() {
        return format!(
            "there is no BMAD here: nothing in {} and {}",
            looked.planning, looked.implementation
        );
    }
    let version = looked.version.as_deref().unwrap_or("of unknown version");
    // Documents may be there without an installation, for instance in a clone.
    let bmad = match &looked.era {
        Some(era) => format!("BMAD {version} (era {era})"),
        None => "BMAD's documents, with no BMAD installed that is known".to_string(),
    };
    let mut counts = vec![number(looked.documents, "document", "documents")];
    counts.push(number(looked.epics, "epic", "epics"));
    counts.push(number(looked.stories, "story file", "story files"));
    match looked.on_board {
        Some(stories) => counts.push(format!("{} on the board", number(stories, "story", "stories"))),
        None => counts.push("no board".into()),
    }
    format!("{bmad} · {} · {} · {}", looked.planning, looked.implementation, counts.join(", "))
}

fn verdict(report: &Report, step: Option<Step>) -> String {
    let of = |weight: Weight| report.problems.iter().filter(|problem| problem.weight == weight).count();
    let counts = [
        number(of(Weight::Error), "error", "errors"),
        number(of(Weight::Warning), "warning", "warnings"),
        number(of(Weight::Note), "note", "notes"),
    ];
    let about = step.map(|step| format!(" for {step}")).unwrap_or_default();
    // Notes need no action, so a project with notes only is called clean.
    let clean = report.problems.iter().all(|problem| problem.weight == Weight::Note);
    let word = match (report.ready, step) {
        (true, None) if clean => "✓ nothing is wrong",
        (true, None) => "✓ nothing stands in the way",
        (true, Some(_)) => "✓ ready",
        (false, _) => "✗ NOT READY",
    };
    let missing = match report.missing.len() {
        0 => String::new(),
        missing => format!("{missing} missing, "),
    };
    format!("{word}{about}: {missing}{}", counts.join(", "))
}

fn number(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}
