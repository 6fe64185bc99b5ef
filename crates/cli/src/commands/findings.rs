//! `tribunal findings [RUN]`.

use std::io::{Write, stdout};

use tribunal_core::{
    finding::{FINDING_SCHEMA, Finding},
    view::RunView,
};
use tribunal_report::tables;

use crate::{
    complaint::Complaint,
    context::{Context, find_run},
    documents::{self, Findings},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one
    run: Option<String>,
    /// Only these: open, assigned, fixed, blocked, dismissed, deferred
    #[arg(long, value_name = "STATUS", value_parser = ["open", "assigned", "fixed", "blocked", "dismissed", "deferred"])]
    status: Option<String>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let none = || Complaint::usage("this project has no runs yet").todo("start one: tribunal review FILE");
    let store = context.journal(&project)?.ok_or_else(none)?;
    let run = match &arguments.run {
        Some(said) => find_run(&store, said)?,
        None => store.runs()?.pop().ok_or_else(none)?,
    };
    let view = RunView::of(&store.entries(&run, 0)?);
    let wanted =
        |finding: &&Finding| arguments.status.as_ref().is_none_or(|status| finding.status.word() == status);
    let findings: Vec<&Finding> = view.findings.values().filter(wanted).collect();
    if context.json {
        documents::print(&Findings {
            schema: "tribunal.findings/1",
            run: Some(run),
            finding_schema: FINDING_SCHEMA,
            findings: findings.into_iter().cloned().collect(),
        })?;
    } else if findings.is_empty() {
        writeln!(stdout(), "run {run} has no such findings")?;
    } else {
        write!(stdout(), "{}", tables::findings(findings, &context.answers))?;
    }
    Ok(0)
}
