//! `tribunal findings [RUN]`: prints the findings for the terminal, for programs, or in one of the formats for
//! handing them on.

use std::io::{Write, stdout};

use tribunal_core::{
    finding::{FINDING_SCHEMA, Finding},
    view::RunView,
};
use tribunal_report::{
    Export, Rulings, escaped,
    tables::{self, Standing},
};
use tribunal_runner::Runner;

use crate::{
    build,
    complaint::Complaint,
    context::Context,
    documents::{self, Findings},
};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A run; else the last one
    run: Option<String>,
    /// Only these: open, assigned, fixed, blocked, dismissed, deferred; several with commas
    #[arg(
        long,
        value_name = "STATUS",
        value_delimiter = ',',
        value_parser = ["open", "assigned", "fixed", "blocked", "dismissed", "deferred"]
    )]
    status: Vec<String>,
    #[command(flatten)]
    form: Form,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Form {
    /// As a page in Markdown
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// As a comment for a pull request, in Markdown of at most 65,000 characters
    #[arg(long, conflicts_with = "json")]
    pr_comment: bool,
    /// As SARIF 2.1.0, for code scanners and editors
    #[arg(long, conflicts_with = "json")]
    sarif: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Complaint> {
    let project = context.project();
    let (store, run) = context.run_meant(&project, arguments.run.as_deref())?;
    let entries = store.entries(&run, 0)?;
    let view = RunView::of(&entries);
    let status = &arguments.status;
    // Without `--status` all findings are printed, dismissed ones included: the filter is the user's choice.
    let wanted =
        |finding: &&Finding| status.is_empty() || status.iter().any(|word| word == finding.status.word());
    let findings: Vec<&Finding> = view.findings.values().filter(wanted).collect();
    let rulings = Rulings::of(&entries);
    let live = Runner::is_live(&project, &run);
    // The export is built only if one of the formats needs it.
    let export =
        || Export { standing: Standing { view: &view, live }, rulings: &rulings, findings: findings.clone() };
    let form = &arguments.form;
    // clap makes sure that at most one of the formats is given, and none of them with `--json`.
    if form.markdown {
        write!(stdout(), "{}", export().markdown())?;
    } else if form.pr_comment {
        write!(stdout(), "{}", export().comment())?;
    } else if form.sarif {
        write!(stdout(), "{}", export().sarif(build::VERSION))?;
    } else if context.json {
        documents::print(&Findings {
            schema: "tribunal.findings/1",
            run: Some(run),
            finding_schema: FINDING_SCHEMA,
            findings: findings.into_iter().cloned().collect(),
        })?;
    } else if findings.is_empty() {
        writeln!(stdout(), "run {} has no such findings", escaped(run.as_str()))?;
    } else {
        write!(stdout(), "{}", tables::findings(findings, &rulings, &context.answers))?;
    }
    Ok(0)
}
