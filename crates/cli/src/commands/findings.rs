//! `tribunal findings [RUN]`.

use std::io::{Write, stdout};

use tribunal_core::{
    finding::{FINDING_SCHEMA, Finding},
    view::RunView,
};
use tribunal_report::{Rulings, escaped, tables};

use crate::{
    complaint::Complaint,
    context::Context,
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
    let (store, run) = context.run_meant(&project, arguments.run.as_deref())?;
    let entries = store.entries(&run, 0)?;
    let view = RunView::of(&entries);
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
        writeln!(stdout(), "run {} has no such findings", escaped(run.as_str()))?;
    } else {
        write!(stdout(), "{}", tables::findings(findings, &Rulings::of(&entries), &context.answers))?;
    }
    Ok(0)
}
